from alma import AntiPattern, Heuristic, MemoryWriter, RetrievalEngine, UserPreference, open_storage

store = open_storage(".alma/alma.db")  # one file, no server
engine = RetrievalEngine(store)  # the embedding model runs on this machine
helena = {"agent": "helena", "project_id": "shop"}
form = "a form with more than five fields"
MemoryWriter(store, engine.embedder).save_many(
    [
        Heuristic(id="h1", condition=form, strategy="validate it field by field", confidence=0.9, **helena),
        AntiPattern(id="a1", pattern="sleeping before a form is sent", better_alternative="wait for it", **helena),
        UserPreference(id="p1", user_id="ana", preference="short answers"),
    ]
)
task = "How do I test a long form?"
known = engine.retrieve(task, agent="helena", project_id="shop", user_id="ana")
print(known.to_prompt(), end="\n\n")
print("h1 was found by", " and ".join(known.explanation_of("h1").found_by))
print("victor gets", engine.retrieve(task, agent="victor", project_id="shop").total_items, "memories")
print("about cakes:", engine.retrieve("How do I bake a cake?", "helena", "shop").total_items)
store.close()

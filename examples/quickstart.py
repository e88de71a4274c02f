from alma import Heuristic, Scope, open_storage

store = open_storage(".alma/alma.db")  # one file, no server
store.save(
    Heuristic(
        id="long-forms",
        agent="helena",
        project_id="shop",
        condition="a form with more than five fields",
        strategy="validate it field by field, then submit once",
        confidence=0.9,
    )
)
store.increment_heuristic_occurrence("long-forms", success=True)

helena, victor = Scope(project_id="shop", agent="helena"), Scope(project_id="shop", agent="victor")
for hit in store.search_text(Heuristic, "How do I test a long form?", helena):
    lesson = hit.record
    print(f"When {lesson.condition}: {lesson.strategy} ({lesson.confidence:.0%}, seen {lesson.occurrence_count}x)")
print("victor finds", store.search_text(Heuristic, "long form", victor))
print("last change:", store.history(Heuristic, "long-forms", helena)[-1].diff_json["occurrence_count"], "-> 1")
store.close()

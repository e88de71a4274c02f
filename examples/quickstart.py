from alma import ALMA

alma = ALMA.quickstart()  # .alma/alma.db: one file, no server; the model runs on this machine
tests = "test empty fields, an invalid email, then a valid submission"
for form in ("login form", "sign-up form", "login form on mobile"):
    alma.learn(agent="helena", task=f"Test the {form}", outcome="success", strategy_used=tests)
for _ in range(3):
    error = "TimeoutError: the page was not ready"
    alma.learn("helena", "Test the checkout form", "failure", "wait with sleep(5)", error_message=error)
alma.add_user_preference("ana", "style", "short answers, no emojis")

task = "Test the login form of the new shop"
known = alma.retrieve(task, agent="helena", user_id="ana")
print(known.to_prompt(max_tokens=160))
print("\nto do:", alma.recommend(task, agent="helena").strategy)
print("victor knows", alma.retrieve(task, agent="victor").total_items, "things about it")
print("about cakes:", alma.retrieve("How do I bake a cake?", agent="helena").total_items)
alma.close()

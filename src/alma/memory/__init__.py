"""What is done with memories once they are there: how they relate, what they were, where they go, who touched them."""

"""Operations: what every face offers, and that no caller leaves its grant."""

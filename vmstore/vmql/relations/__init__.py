"""The relations, by name: fields and the tables behind them."""

"""What serves speed only: delete this folder and every count and time stays (`xcd_model.speed` steps in)."""

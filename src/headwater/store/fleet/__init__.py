"""What a mining operator needs: the market's daily figures and what is forecast from them."""

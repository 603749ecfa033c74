"""The economics of mining: what machines earn, what coins cost, and what is known about tomorrow. All of it is pure."""

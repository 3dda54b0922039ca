"""The obi store in the forms in which archives keep and exchange what they hold."""

"""Draw the plots of the HTML page."""

"""The Zed completions surface: an envelope that carries another surface's request."""

"""Text processing: tokens, stems, languages, scanning; time expressions in `alma.text.timeexpr`."""

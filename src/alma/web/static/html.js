// Preact with tagged templates: text in them is always text, never markup.
import { h, render, Fragment } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render, Fragment };
export { useEffect, useMemo, useRef, useState, useCallback, useLayoutEffect } from "./vendor/hooks.js";
export const html = htm.bind(h);

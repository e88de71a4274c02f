// A graph on a canvas: a force layout whose places are stable, with dragging, zoom and the keyboard.
import { html, useEffect, useRef } from "./html.js";

const COLORS = { memory: "--c1", heuristic: "--c2", outcome: "--c6", domain_knowledge: "--c4", anti_pattern: "--c5", user_preference: "--c3", entity: "--ink", pattern: "--warn" };
const LENGTH = 90;
const CELL = 220;
const FEW = 12;

/** A number from 0 to 1 that is always the same for a text. */
function chance(text, salt) {
  let hash = 2166136261 ^ salt;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return ((hash >>> 0) % 100003) / 100003;
}

/** The layout: nodes keep their places when others come; a place depends on the ids alone. */
export class Layout {
  constructor() {
    this.nodes = new Map();
    this.edges = [];
    this.heat = 0;
    this.shift = 0;
  }

  /** Show these nodes and edges; known nodes stay where they are. */
  set(nodes, edges) {
    const wanted = new Set(nodes.map((node) => node.key));
    for (const key of [...this.nodes.keys()]) if (!wanted.has(key)) this.nodes.delete(key);
    const near = new Map();
    for (const edge of edges) {
      near.set(edge.source, edge.target);
      near.set(edge.target, near.get(edge.target) || edge.source);
    }
    let added = 0;
    for (const node of nodes) {
      const known = this.nodes.get(node.key);
      if (known) {
        Object.assign(known, node);
        continue;
      }
      const from = this.nodes.get(near.get(node.key)) || { x: 0, y: 0 };
      const angle = chance(node.key, 1) * Math.PI * 2;
      const away = this.nodes.size ? LENGTH * (0.7 + chance(node.key, 2)) : 0;
      this.nodes.set(node.key, { ...node, x: from.x + Math.cos(angle) * away, y: from.y + Math.sin(angle) * away, dx: 0, dy: 0, degree: 0 });
      added++;
    }
    this.edges = edges.map((edge) => ({ ...edge, from: this.nodes.get(edge.source), to: this.nodes.get(edge.target) })).filter((edge) => edge.from && edge.to);
    for (const node of this.nodes.values()) node.degree = 0;
    for (const edge of this.edges) edge.from.degree++, edge.to.degree++;
    if (added) this.heat = 1, this.shift = 0;
  }

  /** One step towards rest; whether anything still moves. */
  step() {
    if (this.heat < 0.02) return false;
    const all = [...this.nodes.values()];
    const grid = new Map();
    // The cells lie elsewhere at every step, so that nodes do not gather along their borders.
    this.shift = (this.shift + 0.382 * CELL) % CELL;
    for (const node of all) {
      const place = cellAt(...this.cellOf(node));
      let cell = grid.get(place);
      if (!cell) grid.set(place, (cell = { some: [], x: 0, y: 0 }));
      cell.some.push(node);
      cell.x += node.x, cell.y += node.y;
    }
    for (const cell of grid.values()) cell.x /= cell.some.length, cell.y /= cell.some.length;
    for (const node of all) this.repel(node, grid);
    for (const edge of this.edges) {
      const [dx, dy] = [edge.to.x - edge.from.x, edge.to.y - edge.from.y];
      const distance = Math.hypot(dx, dy) || 1;
      const pull = ((distance - LENGTH) / distance) * 0.06;
      const [one, other] = [pull / Math.sqrt(edge.from.degree), pull / Math.sqrt(edge.to.degree)];
      edge.from.dx += dx * one, edge.from.dy += dy * one;
      edge.to.dx -= dx * other, edge.to.dy -= dy * other;
    }
    for (const node of all) {
      node.dx -= node.x * 0.0015, node.dy -= node.y * 0.0015;
      if (!node.held) node.x += Math.max(-25, Math.min(25, node.dx)) * this.heat, node.y += Math.max(-25, Math.min(25, node.dy)) * this.heat;
      node.dx *= 0.55, node.dy *= 0.55;
    }
    this.heat *= all.length > 1500 ? 0.96 : 0.985;
    return true;
  }

  cellOf(node) {
    return [Math.floor((node.x + this.shift) / CELL), Math.floor((node.y + this.shift) / CELL)];
  }

  repel(node, grid) {
    const [column, row] = this.cellOf(node);
    for (let i = -1; i <= 1; i++)
      for (let j = -1; j <= 1; j++) {
        const cell = grid.get(cellAt(column + i, row + j));
        if (!cell) continue;
        const { some } = cell;
        // Many nodes in a cell beside it push like one at their middle.
        if ((i || j) && some.length > FEW) {
          push(node, cell, some.length);
          continue;
        }
        const stride = Math.max(1, Math.floor(some.length / 48));
        for (let k = 0; k < some.length; k += stride) if (some[k] !== node) push(node, some[k], stride);
      }
  }
}

const cellAt = (column, row) => (column + 32768) * 65536 + row + 32768;

/** Push a node away from a place, as that many nodes there would. */
function push(node, from, many) {
  const dx = node.x - from.x || chance(node.key, 3) - 0.5;
  const dy = node.y - from.y || chance(node.key, 4) - 0.5;
  const square = Math.max(60, dx * dx + dy * dy);
  if (square > CELL * CELL) return;
  const force = (900 * many) / square / Math.sqrt(square);
  node.dx += dx * force, node.dy += dy * force;
}

/** The canvas; `chosen` is the key of the node in focus. */
export function GraphCanvas({ nodes, edges, chosen, path, onChoose, onOpen, label, reset }) {
  const ref = useRef(null);
  const layout = useRef(null);
  const view = useRef({ x: 0, y: 0, zoom: 1 });
  const now = useRef({});
  layout.current ||= new Layout();
  Object.assign(now.current, { chosen, path, onChoose, onOpen });
  useEffect(() => {
    layout.current.set(nodes, edges);
    now.current.draw?.();
  }, [nodes, edges]);
  useEffect(() => now.current.draw?.(), [chosen, path]);
  useEffect(() => {
    view.current = { x: 0, y: 0, zoom: nodes.length < 30 ? 1.6 : 1 };
    now.current.draw?.();
  }, [reset]);
  useEffect(() => mounted(ref.current, layout.current, view, now), []);
  return html`<canvas ref=${ref} tabindex="0" role="application" aria-label=${label} data-nodes=${nodes.length}></canvas>`;
}

function mounted(canvas, layout, view, now) {
  const context = canvas.getContext("2d");
  let frame = null;
  let drag = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const { x, y, zoom } = view.current;
    return { x: (event.clientX - box.left - box.width / 2) / zoom - x, y: (event.clientY - box.top - box.height / 2) / zoom - y };
  };
  const at = (point) => {
    let best = null;
    let least = 18 / view.current.zoom;
    for (const node of layout.nodes.values()) {
      const distance = Math.hypot(node.x - point.x, node.y - point.y);
      if (distance < least) [best, least] = [node, distance];
    }
    return best;
  };
  const draw = () => {
    frame ||= requestAnimationFrame(() => {
      frame = null;
      const moving = layout.step();
      paint(canvas, context, layout, view.current, now.current);
      if (moving) draw();
    });
  };
  now.current.draw = draw;
  const listeners = {
    pointerdown(event) {
      const node = at(place(event));
      drag = { node, x: event.clientX, y: event.clientY, moved: false };
      if (node) node.held = true;
      canvas.setPointerCapture(event.pointerId);
    },
    pointermove(event) {
      if (!drag) {
        canvas.style.cursor = at(place(event)) ? "pointer" : "grab";
        return;
      }
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      drag.moved ||= Math.hypot(dx, dy) > 4;
      if (!drag.moved) return;
      if (drag.node) Object.assign(drag.node, place(event));
      else view.current = { ...view.current, x: view.current.x + dx / view.current.zoom, y: view.current.y + dy / view.current.zoom };
      if (!drag.node) Object.assign(drag, { x: event.clientX, y: event.clientY });
      draw();
    },
    pointerup() {
      if (drag?.node && !drag.moved) now.current.onChoose(drag.node.key);
      if (drag?.node) drag.node.held = false;
      drag = null;
    },
    dblclick(event) {
      const node = at(place(event));
      if (node) now.current.onOpen(node.key);
    },
    wheel(event) {
      event.preventDefault();
      view.current = { ...view.current, zoom: Math.max(0.08, Math.min(4, view.current.zoom * Math.exp(-event.deltaY / 600))) };
      draw();
    },
    keydown(event) {
      const { chosen, onChoose, onOpen } = now.current;
      const from = layout.nodes.get(chosen);
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (event.key === "Enter" && chosen) onOpen(chosen);
      if (!way || !from) return;
      event.preventDefault();
      const ahead = [...layout.nodes.values()].map((node) => [node, (node.x - from.x) * way[0] + (node.y - from.y) * way[1], Math.hypot(node.x - from.x, node.y - from.y)]).filter(([, along, distance]) => along > distance * 0.5 && distance > 1);
      ahead.sort((one, other) => one[2] - other[2]);
      if (ahead.length) onChoose(ahead[0][0].key);
    },
  };
  for (const [name, listener] of Object.entries(listeners)) canvas.addEventListener(name, listener, name === "wheel" ? { passive: false } : undefined);
  const sized = new ResizeObserver(() => {
    const scale = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * scale;
    canvas.height = canvas.clientHeight * scale;
    draw();
  });
  sized.observe(canvas);
  return () => {
    sized.disconnect();
    cancelAnimationFrame(frame);
  };
}

function paint(canvas, context, layout, { x, y, zoom }, { chosen, path }) {
  const style = getComputedStyle(canvas);
  const color = (name) => style.getPropertyValue(name);
  const scale = devicePixelRatio || 1;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(scale * zoom, 0, 0, scale * zoom, canvas.width / 2 + x * zoom * scale, canvas.height / 2 + y * zoom * scale);
  const few = layout.nodes.size < 250;
  context.lineWidth = 1 / zoom;
  for (const marked of [false, true]) {
    context.strokeStyle = color(marked ? "--accent" : "--line-strong");
    context.lineWidth = (marked ? 2.5 : 1) / zoom;
    context.beginPath();
    for (const edge of layout.edges) {
      const on = path?.has(`${edge.source} ${edge.target}`) || path?.has(`${edge.target} ${edge.source}`) || false;
      if (on === marked) context.moveTo(edge.from.x, edge.from.y), context.lineTo(edge.to.x, edge.to.y);
    }
    context.stroke();
  }
  context.font = `${11 / Math.max(0.8, zoom)}px system-ui`;
  context.textAlign = "center";
  if (few && zoom > 0.7) {
    context.fillStyle = color("--quiet");
    for (const edge of layout.edges) if (edge.source === chosen || edge.target === chosen) context.fillText(edge.relation.replaceAll("_", " "), (edge.from.x + edge.to.x) / 2, (edge.from.y + edge.to.y) / 2 - 3);
  }
  const kinds = new Map();
  for (const node of layout.nodes.values()) (kinds.get(node.kind) || kinds.set(node.kind, []).get(node.kind)).push(node);
  for (const [kind, some] of kinds) {
    context.fillStyle = color(COLORS[kind] || "--quiet");
    context.beginPath();
    for (const node of some) {
      const size = 4.5 + Math.min(6, Math.sqrt(node.degree));
      if (kind === "entity") context.rect(node.x - size, node.y - size, 2 * size, 2 * size);
      else context.moveTo(node.x + size, node.y), context.arc(node.x, node.y, size, 0, Math.PI * 2);
    }
    context.fill();
  }
  context.fillStyle = color("--ink");
  for (const node of layout.nodes.values()) {
    const on = node.key === chosen;
    if (on) {
      context.strokeStyle = color("--accent");
      context.lineWidth = 2.5 / zoom;
      context.beginPath();
      context.arc(node.x, node.y, 14, 0, Math.PI * 2);
      context.stroke();
    }
    if (on || (few && (zoom > 0.8 || node.degree > 3)) || (zoom > 1.6 && node.degree > 1)) context.fillText(node.label.length > 28 && !on ? `${node.label.slice(0, 27)}…` : node.label.slice(0, 60), node.x, node.y + 22);
  }
}

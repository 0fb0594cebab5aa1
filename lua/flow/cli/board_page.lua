-- cli/board_page.lua: the page of flowlua board: HTML, styles and JavaScript in one text that uses no other server. It asks for
-- /runs every two seconds, and for a tag only while its panel is seen and its version has grown. Texts of files are set as texts.
return [==[
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>flowlua board</title>
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
  :root { --ink: #24292f; --muted: #66707b; --line: #d8dee4; --paper: #fff; --back: #f6f8fa; }
  @media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --muted: #9aa4ae; --line: #3a424b; --paper: #161b22; --back: #0d1117; } }
  * { box-sizing: border-box; }
  body { margin: 0; font: 14px system-ui, sans-serif; color: var(--ink); background: var(--back); display: flex; min-height: 100vh; }
  aside { width: 260px; flex: none; padding: 14px; border-right: 1px solid var(--line); background: var(--paper); overflow: auto;
          height: 100vh; position: sticky; top: 0; }
  main { flex: 1; padding: 14px; min-width: 0; }
  h1 { font-size: 16px; margin: 0 0 10px; overflow-wrap: anywhere; }
  label { display: block; margin: 8px 0; color: var(--muted); }
  label input[type=range], label input[type=search], label select { width: 100%; }
  .run { display: flex; gap: 6px; align-items: center; margin: 3px 0; color: var(--ink); overflow-wrap: anywhere; }
  .run i { width: 18px; border-top: 3px solid; flex: none; }
  nav button { border: 1px solid var(--line); background: var(--paper); color: var(--ink); padding: 5px 12px; margin-right: 4px;
               border-radius: 5px; font: inherit; cursor: pointer; }
  nav button[aria-pressed=true] { background: #1f6fb4; color: #fff; }
  #panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(380px, 1fr)); gap: 12px; margin-top: 12px; }
  section { background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: 10px; min-width: 0; }
  section h2 { font-size: 13px; margin: 0 0 6px; overflow-wrap: anywhere; }
  svg { width: 100%; height: 240px; display: block; } svg text { font-size: 11px; fill: var(--muted); }
  section { min-height: 296px; } .wide { grid-column: 1 / -1; min-height: 0; }
  figure { display: inline-block; margin: 0 12px 12px 0; vertical-align: top; }
  figcaption, #state, .note { color: var(--muted); font-size: 12px; }
  figure img { max-width: 100%; image-rendering: pixelated; display: inline-block; margin: 2px; vertical-align: top; }
  .graph { overflow: auto; max-height: 80vh; } .graph svg { height: auto; width: auto; }
  pre { white-space: pre-wrap; margin: 4px 0 12px; } #troubles { color: #c0392b; }
</style></head><body>
<aside><h1 id="folder">flowlua board</h1><p id="state">...</p>
  <label>tags <input id="tags" type="search" placeholder="part of a name"></label>
  <label>smoothing <output id="amount">0</output><input id="smoothing" type="range" min="0" max="0.99" step="0.01" value="0"></label>
  <label>across <select id="across"><option value="step">step</option><option value="relative">hours since the first</option>
    <option value="wall">time of day</option></select></label>
  <label><input id="logarithmic" type="checkbox"> logarithmic values</label>
  <label>runs <input id="filter" type="search" placeholder="part of a name"></label>
  <div id="runs"></div><div id="troubles"></div>
</aside>
<main><nav id="kinds"></nav><div id="panels"></div></main>
<script>
'use strict';
const at = id => document.getElementById(id), ns = 'http://www.w3.org/2000/svg';
const COLORS = ['#1f6fb4', '#d9601a', '#2a9d5c', '#a03fa8', '#b8860b', '#c0392b', '#128a9c', '#7a6b5d', '#e377a2', '#6b7fd7'];
const KINDS = ['scalars', 'histograms', 'pictures', 'graphs', 'texts'];
let known = { runs: [], tags: [] }, kind = location.hash.slice(1) || 'scalars';
let hidden = new Set(), panels = new Map(), drawnRuns = '', drawnKinds = '';

function make(name, parent, text, attributes) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  for (const key in attributes || {}) e.setAttribute(key, attributes[key]);
  if (parent) parent.appendChild(e);
  return e;
}
function draw(name, parent, attributes, text) {
  const e = document.createElementNS(ns, name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text !== undefined) e.textContent = text;
  parent.appendChild(e);
  return e;
}
const nameOf = id => (known.runs.find(r => r.id === id) || { name: '?' }).name;
// A run's training and validation have one colour: the second is dashed.
const stem = name => name.replace(/(^|\/)(train|validation|test|eval)$/, '') || '.';
const isDashed = name => /(^|\/)(validation|test|eval)$/.test(name);
function colorOf(name) {
  const stems = [...new Set(known.runs.map(r => stem(r.name)))].sort();
  if (stems.length === 1 && known.runs.length < 3) return COLORS[isDashed(name) ? 1 : 0];
  return COLORS[stems.indexOf(stem(name)) % COLORS.length];
}
const isSeen = id => !hidden.has(nameOf(id)) && nameOf(id).includes(at('filter').value);
const isWide = v => Math.abs(v) >= 1e5 || v !== 0 && Math.abs(v) < 1e-4;
const short = v => !Number.isFinite(v) ? String(v) : isWide(v) ? v.toExponential(2) : String(+v.toPrecision(4));

function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(f => f * power).find(s => s >= raw * 0.999), list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) list.push(i * step);
  return list;
}
const FRAME = { left: 56, right: 24, top: 8, bottom: 26, height: 240 };
const widthOf = body => Math.max(300, body.clientWidth);
// Axes with ticks; answers with what turns values into places.
function axes(svg, width, low, high, labels) {
  const f = FRAME, w = width - f.left - f.right, h = f.height - f.top - f.bottom;
  const x = v => f.left + (v - low.x) / (high.x - low.x) * w, y = v => f.top + h - (v - low.y) / (high.y - low.y) * h;
  svg.setAttribute('viewBox', `0 0 ${width} ${f.height}`);
  for (const v of ticks(low.y, high.y, 5)) {
    draw('line', svg, { x1: f.left, x2: f.left + w, y1: y(v), y2: y(v), stroke: 'var(--line)' });
    draw('text', svg, { x: f.left - 6, y: y(v) + 4, 'text-anchor': 'end' }, labels.y(v));
  }
  for (const v of ticks(low.x, high.x, 5))
    draw('text', svg, { x: x(v), y: f.height - 8, 'text-anchor': 'middle' }, labels.x(v));
  return { x, y };
}
// Ends between which a double has hardly other numbers count as one: ticks() could not count from one to the other.
const isOne = (low, high) => !(high - low > 1e-13 * Math.max(Math.abs(low), Math.abs(high)));
function widen(low, high) {
  const room = (v, least) => Math.max(least, Math.abs(v) * 1e-9);
  if (isOne(low.x, high.x)) { const r = room(low.x, 0.5); low.x -= r; high.x += r; }
  if (isOne(low.y, high.y)) { const r = Math.abs(low.y) * 0.1 || 1; low.y -= r; high.y += r; }
}
// Exponential smoothing whose beginning is not drawn towards zero.
function smooth(values, amount) {
  let sum = 0, weight = 0;
  return values.map(v => {
    if (!Number.isFinite(v)) return v;
    sum = sum * amount + (1 - amount) * v; weight = weight * amount + 1 - amount;
    return sum / weight;
  });
}
function scalars(body, data) {
  const across = at('across').value, logarithmic = at('logarithmic').checked, amount = +at('smoothing').value;
  const low = { x: Infinity, y: Infinity }, high = { x: -Infinity, y: -Infinity }, curves = [];
  for (const s of data.series.filter(s => isSeen(s.run))) {
    const xs = across === 'step' ? s.steps : across === 'wall' ? s.walls : s.walls.map(w => (w - s.walls[0]) / 3600);
    const scale = v => logarithmic ? (v > 0 ? Math.log10(v) : NaN) : v, list = l => l && l.map(Number).map(scale);
    const c = { name: nameOf(s.run), xs: xs.map(Number), raw: s.values.map(Number), ys: list(s.values) };
    c.low = list(s.low); c.high = list(s.high);
    c.shown = smooth(c.ys, amount);
    c.xs.forEach((v, i) => {
      if (!Number.isFinite(v)) return;
      low.x = Math.min(low.x, v); high.x = Math.max(high.x, v);
      for (const y of amount > 0 ? [c.shown[i]] : [c.ys[i], c.low && c.low[i], c.high && c.high[i]])
        if (Number.isFinite(y)) { low.y = Math.min(low.y, y); high.y = Math.max(high.y, y); }
    });
    curves.push(c);
  }
  const note = make('div', null, '', { class: 'note' });
  if (!(low.y <= high.y)) { body.replaceChildren(make('p', null, curves.length ? 'no finite value' : 'no run is chosen')); return; }
  widen(low, high);
  const svg = draw('svg', make('div'), {}), width = widthOf(body), time = v => new Date(v * 1000).toLocaleTimeString();
  const place = axes(svg, width, low, high, { x: across === 'wall' ? time : short, y: v => short(logarithmic ? 10 ** v : v) });
  for (const c of curves) {
    const color = colorOf(c.name), fine = i => Number.isFinite(c.xs[i]) && Number.isFinite(c.shown[i]);
    let path = '', open = false;
    c.xs.forEach((v, i) => {
      if (fine(i)) path += (open ? 'L' : 'M') + place.x(v).toFixed(1) + ',' + place.y(c.shown[i]).toFixed(1);
      open = fine(i);
    });
    if (c.low && amount === 0) {
      const edge = (list, i) => place.x(c.xs[i]).toFixed(1) + ',' + place.y(Number.isFinite(list[i]) ? list[i] : c.shown[i]).toFixed(1);
      const seen = c.xs.map((_, i) => i).filter(fine);
      draw('polygon', svg, { points: seen.map(i => edge(c.high, i)).concat(seen.reverse().map(i => edge(c.low, i))).join(' '),
                             fill: color, opacity: 0.2 });
    }
    const line = draw('path', svg, { d: path, fill: 'none', stroke: color, 'stroke-width': 1.6, 'stroke-linejoin': 'round' });
    if (isDashed(c.name)) line.setAttribute('stroke-dasharray', '5 3');
    if (c.xs.length <= 30) c.xs.forEach((v, i) => {
      if (fine(i)) draw('circle', svg, { cx: place.x(v), cy: place.y(c.shown[i]), r: 2.2, fill: color });
    });
  }
  const last = c => `${c.name} ${short(c.raw[c.raw.length - 1])}`;
  const all = curves.length <= 4 ? curves.map(last).join(' · ') : `${curves.length} runs`;
  note.textContent = all;
  svg.addEventListener('mousemove', event => {
    const box = svg.getBoundingClientRect(), fit = Math.min(box.width / width, box.height / FRAME.height);
    const px = (event.clientX - box.left - (box.width - width * fit) / 2) / fit;
    const py = (event.clientY - box.top - (box.height - FRAME.height * fit) / 2) / fit;
    let best = null, least = 40 * 40;
    for (const c of curves) c.xs.forEach((v, i) => {
      const far = (place.x(v) - px) ** 2 + (place.y(c.shown[i]) - py) ** 2;
      if (far < least) { least = far; best = `${c.name} · ${across} ${across === 'wall' ? time(v) : short(v)} · ${c.raw[i]}`; }
    });
    note.textContent = best || all;
  });
  svg.addEventListener('mouseleave', () => { note.textContent = all; });
  body.replaceChildren(svg, note);
}
// Later histograms stand lower and darker; a row is left edge, right edge, count.
function histograms(body, data) {
  const w = widthOf(body);
  body.replaceChildren();
  for (const s of data.series.filter(s => isSeen(s.run))) {
    const rows = s.histograms.map(h => h || []), low = { x: Infinity, y: 0 }, high = { x: -Infinity, y: 0 };
    for (const h of rows) for (let i = 0; i < h.length; i += 3) {
      low.x = Math.min(low.x, h[i]); high.x = Math.max(high.x, h[i + 1]);
      const width = h[i + 1] - h[i] || 1;
      high.y = Math.max(high.y, h[i + 2] / width);
    }
    if (!(low.x <= high.x) || !(high.y > 0)) { make('p', body, nameOf(s.run) + ': no values', { class: 'note' }); continue; }
    widen(low, high);
    const svg = draw('svg', body, { viewBox: `0 0 ${w} 240` }), count = rows.length, room = 70;
    const x = v => 20 + (v - low.x) / (high.x - low.x) * (w - 90);
    rows.forEach((h, k) => {
      const base = count > 1 ? 80 + (210 - 80) * k / (count - 1) : 210;
      let path = `M${x(low.x)},${base}`;
      for (let i = 0; i < h.length; i += 3) {
        const left = x(h[i]).toFixed(1), right = x(h[i + 1]).toFixed(1);
        const top = (base - h[i + 2] / (h[i + 1] - h[i] || 1) / high.y * room).toFixed(1);
        path += (h[i] > (i ? h[i - 2] : low.x) ? `L${left},${base}` : '') + `L${left},${top}L${right},${top}`;
        if (!(h[i + 3] <= h[i + 1])) path += `L${right},${base}`;
      }
      const line = draw('path', svg, { d: path + `L${x(high.x)},${base}`, fill: colorOf(nameOf(s.run)), stroke: 'var(--paper)',
                                       'fill-opacity': 0.35 + 0.65 * (k + 1) / count });
      draw('title', line, {}, `step ${s.steps[k]}: ${short(h[0])} to ${short(h[h.length - 2])}`);
      if (k === count - 1 || k === 0 && count > 1) draw('text', svg, { x: w - 64, y: base }, 'step ' + short(s.steps[k]));
    });
    for (const v of ticks(low.x, high.x, 6)) draw('text', svg, { x: x(v), y: 232, 'text-anchor': 'middle' }, short(v));
    make('div', body, nameOf(s.run), { class: 'note' });
  }
}
// Small pictures are shown larger, by a whole factor.
const SMALL = 160;
function enlarge(img) {
  const factor = Math.max(1, Math.floor(SMALL / Math.max(img.naturalWidth, img.naturalHeight)));
  img.style.width = img.naturalWidth * factor + 'px';
}
// The last pictures of each run; a slider goes back.
function pictures(body, data) {
  const places = body.places || (body.places = {});
  body.replaceChildren();
  for (const s of data.series.filter(s => isSeen(s.run))) {
    const figure = make('figure', body), holder = make('div', figure), text = make('figcaption', figure), last = s.steps.length - 1;
    const show = i => {
      holder.replaceChildren(...s.pictures[i].map(path => {
        const img = make('img', null, undefined, { alt: data.tag });
        img.onload = () => enlarge(img);
        img.src = path;
        return img;
      }));
      text.textContent = `${nameOf(s.run)} · step ${s.steps[i]}`;
    };
    const slider = make('input', figure, undefined, { type: 'range', min: 0, max: last, value: last });
    if (places[s.run] < last) slider.value = places[s.run];
    slider.addEventListener('input', () => {
      if (+slider.value === last) delete places[s.run]; else places[s.run] = +slider.value;
      show(+slider.value);
    });
    if (last < 1) slider.remove();
    show(+slider.value);
  }
}
function texts(body, data) {
  body.replaceChildren();
  for (const s of data.series.filter(s => isSeen(s.run))) s.texts.forEach((text, i) => {
    make('div', body, `${nameOf(s.run)} · step ${s.steps[i]}`, { class: 'note' });
    make('pre', body, text || '');
  });
}
// Layers of a Keras configuration, a model of a file: { name, kind, about, from: names, depth }, each after those that it is called on.
const TOLD = ['batch_shape', 'units', 'filters', 'kernel_size', 'pool_size', 'strides', 'target_shape', 'rate', 'activation'];
const MOST_LAYERS = 500;
function sourcesOf(value, found, depth) {
  if (!value || typeof value !== 'object' || depth > 8) return found;
  if (Array.isArray(value) && typeof value[0] === 'string' && typeof value[1] === 'number') found.push(value[0]);      // of Keras 2
  else if (value.config && Array.isArray(value.config.keras_history)) found.push(String(value.config.keras_history[0]));
  else for (const inner of Object.values(value)) sourcesOf(inner, found, depth + 1);
  return found;
}
function layersOf(model) {
  const list = model.config.layers, byName = new Map(), layers = [];
  if (!Array.isArray(list)) throw new Error('no layers');
  for (const entry of list.slice(0, MOST_LAYERS)) {
    const config = entry.config || {}, before = layers[layers.length - 1];
    const from = entry.inbound_nodes ? sourcesOf(entry.inbound_nodes, [], 0) : before ? [before.name] : [];
    const told = TOLD.filter(key => config[key] !== undefined && config[key] !== null && config[key] !== 'linear');
    const inner = config.layers ? [`${config.layers.length} layers`]
      : told.map(key => `${key} ${JSON.stringify(config[key]).slice(0, 24)}`);
    const layer = { name: String(entry.name || config.name), kind: String(entry.class_name), about: inner.join(', ').replace(/"/g, '') };
    layer.from = [...new Set(from)].filter(name => byName.has(name));
    layer.depth = Math.max(-1, ...layer.from.map(name => byName.get(name).depth)) + 1;
    byName.set(layer.name, layer);
    layers.push(layer);
  }
  return { layers, byName, left: Math.max(0, list.length - MOST_LAYERS) };
}
// The last model of each run, layer by layer from above.
const BOX = { width: 230, height: 40, across: 250, down: 66 };
function graphs(body, data) {
  body.replaceChildren();
  for (const s of data.series.filter(s => isSeen(s.run))) {
    let found = null;
    try { found = layersOf(JSON.parse(s.graphs[s.graphs.length - 1])); } catch (e) { /* a damaged or too large text */ }
    const more = !found ? ': this model cannot be drawn' : found.left ? `: ${found.left} more layers` : '';
    make('div', body, nameOf(s.run) + more, { class: 'note' });
    if (!found || !found.layers.length) continue;
    const rows = [];
    for (const layer of found.layers) (rows[layer.depth] = rows[layer.depth] || []).push(layer);
    const width = Math.max(...rows.map(row => row.length)) * BOX.across, height = rows.length * BOX.down;
    const svg = draw('svg', make('div', body, undefined, { class: 'graph' }), { width, height, viewBox: `0 0 ${width} ${height}` });
    rows.forEach((row, k) => row.forEach((layer, i) => {
      layer.x = (width - row.length * BOX.across) / 2 + i * BOX.across + 10;
      layer.y = k * BOX.down + 4;
    }));
    for (const layer of found.layers) for (const name of layer.from) {
      const from = found.byName.get(name), x1 = from.x + BOX.width / 2, y1 = from.y + BOX.height, x2 = layer.x + BOX.width / 2;
      const bend = (layer.y - y1) / 2;
      draw('path', svg, { d: `M${x1},${y1}C${x1},${y1 + bend} ${x2},${layer.y - bend} ${x2},${layer.y}`, fill: 'none',
                          stroke: 'var(--muted)' });
    }
    for (const layer of found.layers) {
      const box = draw('g', svg, { transform: `translate(${layer.x},${layer.y})` });
      draw('rect', box, { width: BOX.width, height: BOX.height, rx: 5, fill: 'var(--back)', stroke: 'var(--line)' });
      draw('text', box, { x: 8, y: 16 }, `${layer.kind}  ${layer.name}`.slice(0, 38)).style.fill = 'var(--ink)';
      draw('text', box, { x: 8, y: 32 }, layer.about.slice(0, 38));
      draw('title', box, {}, `${layer.kind} ${layer.name}: ${layer.about}`);
    }
  }
}
const SHOW = { scalars, histograms, pictures, graphs, texts };

const watcher = new IntersectionObserver(entries => {
  for (const e of entries) { e.target.panel.seen = e.isIntersecting; if (e.isIntersecting) load(e.target.panel); }
}, { rootMargin: '200px' });
async function load(panel) {
  if (panel.loading || panel.have === panel.tag.version) return;
  panel.loading = true;
  try {
    panel.data = await (await fetch(`${panel.tag.kind}/${panel.tag.id}`)).json();
    panel.have = panel.data.version;
    SHOW[panel.tag.kind](panel.body, panel.data);
  } catch (e) { /* the next look asks again */ }
  panel.loading = false;
}
function redraw() { for (const p of panels.values()) if (p.data) SHOW[p.tag.kind](p.body, p.data); }

function layOut() {
  const present = KINDS.filter(k => known.tags.some(t => t.kind === k));
  if (present.length && !present.includes(kind)) kind = present[0];
  if (drawnKinds !== present + kind) {
    drawnKinds = present + kind;
    at('kinds').replaceChildren(...present.map(k => {
      const button = make('button', null, k, { 'aria-pressed': k === kind });
      button.onclick = () => { kind = k; location.hash = k; layOut(); };
      return button;
    }));
  }
  const wanted = known.tags.filter(t => t.kind === kind && t.name.includes(at('tags').value)).sort((a, b) => a.name < b.name ? -1 : 1);
  for (const [id, p] of panels) if (!wanted.some(t => t.id === id)) { watcher.unobserve(p.section); p.section.remove(); panels.delete(id); }
  wanted.forEach((tag, i) => {
    let p = panels.get(tag.id);
    if (!p) {
      p = { section: make('section', null, undefined, kind === 'scalars' || kind === 'histograms' ? {} : { class: 'wide' }) };
      make('h2', p.section, tag.name);
      p.body = make('div', p.section);
      p.section.panel = p;
      panels.set(tag.id, p);
      watcher.observe(p.section);
    }
    p.tag = tag;
    if (at('panels').children[i] !== p.section) at('panels').insertBefore(p.section, at('panels').children[i] || null);
    if (p.seen) load(p);
  });
}
function listRuns() {
  const names = known.runs.map(r => r.name).sort(), shown = names.filter(n => n.includes(at('filter').value));
  if (drawnRuns === JSON.stringify(shown)) return;
  drawnRuns = JSON.stringify(shown);
  at('runs').replaceChildren(...shown.map(name => {
    const row = make('label', null, undefined, { class: 'run' }), box = make('input', row, undefined, { type: 'checkbox' });
    box.checked = !hidden.has(name);
    box.onchange = () => { if (box.checked) hidden.delete(name); else hidden.add(name); redraw(); };
    const line = make('i', row);
    line.style.borderColor = colorOf(name);
    if (isDashed(name)) line.style.borderTopStyle = 'dotted';
    make('span', row, name === '.' ? '(this folder)' : name);
    return row;
  }));
  redraw();
}
async function refresh() {
  let wait = 2000;
  try {
    known = await (await fetch('runs')).json();
    at('folder').textContent = known.folder;
    at('state').textContent = known.more ? 'reading ...' : known.runs.length ? `${known.runs.length} runs`
      : 'no event files yet: TensorBoard(log_dir) of flow.callbacks writes them';
    at('troubles').replaceChildren(...known.troubles.map(t => make('p', null, t)));
    listRuns(); layOut();
    if (known.more) wait = 50;
  } catch (e) { at('state').textContent = 'no answer: flowlua board has ended'; }
  setTimeout(refresh, wait);
}
for (const id of ['across', 'logarithmic']) at(id).onchange = redraw;
at('smoothing').oninput = () => { at('amount').textContent = at('smoothing').value; redraw(); };
at('filter').oninput = () => { listRuns(); redraw(); };
at('tags').oninput = layOut;
onresize = redraw;
refresh();
</script></body></html>
]==]

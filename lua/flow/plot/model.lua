-- model.lua: model:plot(file): the graph of a model's layers as a picture (.svg, .png) or for Graphviz (.dot).
--
-- graph_of() makes a graph of the model: { boxes = { { layer =, name =, class =, inputs =, outputs = symbolic tensors of its first call }
-- }, edges = { { from, to } } }, positions in boxes. layout.lua places the boxes, and the rest draws them with svg.lua. Boxes get more
-- fields on the way: lines, width, height (measure), across, along, x, y (layout).

local errors = require "flow.errors"
local object = require "flow.object"
local symbolic = require "flow.layers.symbolic"
local summary = require "flow.model.summary"
local layout = require "flow.plot.layout"
local svg = require "flow.plot.svg"

local plot = {}

local SWITCHES = { "show_shapes", "show_dtype", "show_layer_names", "expand_nested", "show_layer_activations", "show_trainable" }
local OPTIONS = { rankdir = true, dpi = true }
for _, name in ipairs(SWITCHES) do OPTIONS[name] = true end
local DIRECTIONS = { TB = true, BT = true, LR = true, RL = true }
local MARGIN, PADDING, MOST_WIDTH = 20, 12, 320
local INK, MUTED, EDGE = "#24292f", "#66707b", "#8a949e"

-- Fill and edge of boxes by what a layer does; all others are grey.
local COLORS = {
  { "^Input", "#eef7ee", "#5b9a5b" }, { "Conv", "#eaf2fb", "#3f7fbf" }, { "Pool", "#e8f6f7", "#3a98a2" }, { "Dense", "#fdf1e7", "#cc7a33" },
  { "Normalization", "#f4effa", "#8a63b8" }, { "^Add$", "#fdf6dd", "#b8962a" }, { "Concatenate", "#fdf6dd", "#b8962a" },
}

-- The options of model:plot, checked: { shapes =, dtype =, names =, activations =, trainable =, expand = true or nil, dpi = number or nil,
-- rankdir = "TB" by default }.
local function check_options(options)
  options = errors.check_options("model:plot", options, OPTIONS)
  local rankdir = options.rankdir or "TB"
  if not DIRECTIONS[rankdir] then
    errors.raise("model:plot: rankdir is \"TB\", \"BT\", \"LR\" or \"RL\", got %s", errors.describe(rankdir))
  end
  for _, name in ipairs(SWITCHES) do
    if options[name] ~= nil and type(options[name]) ~= "boolean" then
      errors.raise("model:plot: %s is true or false, got %s", name, errors.describe(options[name]))
    end
  end
  if options.dpi ~= nil and not (type(options.dpi) == "number" and options.dpi >= 24 and options.dpi <= 2400) then
    errors.raise("model:plot: dpi, dots an inch, is a number from 24 to 2400, got %s", errors.describe(options.dpi))
  end
  return { shapes = options.show_shapes, dtype = options.show_dtype, names = options.show_layer_names, rankdir = rankdir,
           activations = options.show_layer_activations, trainable = options.show_trainable, expand = options.expand_nested,
           dpi = options.dpi }
end

---- the graph -------------------------------------------------------------------------------------------------------------------

-- Adds the layers of a model to graph = { boxes =, edges =, known = the edges that are there, as "from>to" }. sources: the boxes that give
-- its inputs, nil for the outermost model, whose inputs are boxes themselves. expand: nested models become their layers. Returns the boxes
-- that give its outputs. A layer that is called several times is one box with the edges of all calls. prefix: of the names of a nested
-- model's layers.
local function add_model(graph, model, prefix, sources, expand)
  local made_by, box_of = {}, {}
  for i, input in ipairs(model.inputs) do made_by[input] = sources and sources[i] end
  local function box_for(layer, node)
    if not box_of[layer] then
      local class_name = rawget(layer, "_operation") and summary.class_of(layer) or layer.class_name
      graph.boxes[#graph.boxes + 1] = { layer = layer, name = prefix .. layer.name, class = class_name, inputs = node.inputs,
                                        outputs = node.outputs }
      box_of[layer] = #graph.boxes
    end
    return box_of[layer]
  end
  for _, node in ipairs(model._order) do
    local inner = expand and #node.inputs > 0 and rawget(node.layer, "_order")
    local from = {}
    for i, input in ipairs(node.inputs) do from[i] = made_by[input] end
    if inner then
      local results = add_model(graph, node.layer, prefix .. node.layer.name .. "/", from, expand)
      for i, output in ipairs(node.outputs) do made_by[output] = results[i] end
    elseif not made_by[node.outputs[1]] then
      local box = box_for(node.layer, node)
      for _, source in ipairs(from) do
        local key = source .. ">" .. box
        if not graph.known[key] then graph.edges[#graph.edges + 1] = { source, box } end
        graph.known[key] = true
      end
      for _, output in ipairs(node.outputs) do made_by[output] = box end
    end
  end
  local results = {}
  for i, output in ipairs(model.outputs) do results[i] = made_by[output] end
  return results
end

-- A model that does not know its graph is one box a layer; those of a Sequential that is not built are joined one after the other. Raises
-- for a model without layers.
local function graph_of(model, expand)
  local graph = { boxes = {}, edges = {}, known = {} }
  if rawget(model, "_order") then
    add_model(graph, model, "", nil, expand)
    return graph
  end
  for i, layer in ipairs(model.layers) do
    graph.boxes[i] = { layer = layer, name = layer.name, class = layer.class_name, inputs = {}, outputs = {} }
    if i > 1 and object.class_of(model).name == "Sequential" then graph.edges[#graph.edges + 1] = { i - 1, i } end
  end
  if #graph.boxes == 0 then errors.raise("%s: plot: it has no layers yet", object.title(model)) end
  return graph
end

-- The shapes of symbolic tensors: "?" for none, as of a layer that was never called.
local function shapes_text(list)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = symbolic.shape_text(value.shape) end
  return #parts == 0 and "?" or #parts == 1 and parts[1] or "[" .. table.concat(parts, ", ") .. "]"
end

-- The name of a layer's activation; nil: it has none. That of a layer is its class, that of a function of the script "function".
local function activation_of(layer)
  local own = rawget(layer, "_own_choices")
  if own and own.activation then return "function" end
  local ok, config = pcall(layer.get_config, layer)
  local activation = ok and type(config) == "table" and config.activation
  if type(activation) == "table" then activation = activation.class_name end
  return type(activation) == "string" and activation or nil
end

-- The lines of a box: the class, then what was asked for.
local function lines_of(box, how)
  local lines = { { text = box.class, size = 13.5, weight = "600", fill = INK } }
  local function add(text) lines[#lines + 1] = { text = text, size = 11.5, fill = MUTED } end
  if how.names then add(box.name) end
  if how.shapes then
    local input, output = shapes_text(box.inputs), shapes_text(box.outputs)
    local both = input .. " → " .. output
    if #box.inputs == 0 or input == output then
      add(output)
    elseif svg.text_width(both, 11.5) + 2 * PADDING <= MOST_WIDTH then
      add(both)
    else
      add(input)
      add("→ " .. output)
    end
  end
  if how.dtype then add(#box.outputs > 0 and box.outputs[1].dtype or "?") end
  local activation = how.activations and activation_of(box.layer)
  if activation then add("activation: " .. activation) end
  if how.trainable and #box.layer.weights > 0 then add("trainable: " .. tostring(box.layer.trainable)) end
  return lines
end

---- drawing ----------------------------------------------------------------------------------------------------------------------------

-- Sets lines, width and height of a box, in pixels. Lines wider than MOST_WIDTH are cut when they are drawn.
local function measure(box, how)
  box.lines = lines_of(box, how)
  local width, height = 90, 2 * 9 - 5
  for _, line in ipairs(box.lines) do
    width = math.max(width, math.min(svg.text_width(line.text, line.size, line.weight) + 2 * PADDING, MOST_WIDTH))
    height = height + line.size + 5
  end
  box.width, box.height = width, height
end

local function colors_of(class)
  for _, color in ipairs(COLORS) do
    if class:find(color[1]) then return color[2], color[3] end
  end
  return "#f4f5f7", "#8a949e"
end

-- x, y: the upper left corner.
local function draw_box(drawing, box, x, y)
  local fill, stroke = colors_of(box.class)
  drawing:add("rect", { x = x, y = y, width = box.width, height = box.height, rx = 6, fill = fill, stroke = stroke, stroke_width = 1.2 },
    ("%s (%s)"):format(box.name, box.class))
  local at = y + 9 - 5
  for _, line in ipairs(box.lines) do
    at = at + line.size + 5
    drawing:text(x + box.width / 2, at - 2, line.text, { size = line.size, weight = line.weight, fill = line.fill, anchor = "middle",
                                                          width = box.width - PADDING })
  end
end

-- A curve that leaves and enters along the direction of the layers, straight where it passes a layer; and its arrow head. points: of
-- layout.lua; place(x, y): where a point of the layout is in the drawing.
local function draw_edge(drawing, points, place, horizontal)
  local function number(x, y)
    x, y = place(x, y)
    return svg.number(x) .. "," .. svg.number(y)
  end
  local path = { "M" .. number(points[1], points[2]) }
  for i = 3, #points, 2 do
    local x0, y0, x1, y1 = points[i - 2], points[i - 1], points[i], points[i + 1]
    local bend = (y1 - y0) / 2
    path[#path + 1] = x0 == x1 and "L" .. number(x1, y1)
      or ("C%s %s %s"):format(number(x0, y0 + bend), number(x1, y1 - bend), number(x1, y1))
  end
  drawing:add("path", { d = table.concat(path), fill = "none", stroke = EDGE, stroke_width = 1.4 })
  local x, y = place(points[#points - 1], points[#points])
  local before_x, before_y = place(points[#points - 1], points[#points] - 7)
  local wide_x, wide_y = horizontal and 0 or 4, horizontal and 4 or 0
  drawing:add("path", { d = ("M%s,%sL%s,%sL%s,%sZ"):format(svg.number(x), svg.number(y), svg.number(before_x - wide_x),
    svg.number(before_y - wide_y), svg.number(before_x + wide_x), svg.number(before_y + wide_y)), fill = EDGE })
end

-- The picture, and what it shows.
local function drawn(model, graph, how)
  local horizontal, backwards = how.rankdir == "LR" or how.rankdir == "RL", how.rankdir == "BT" or how.rankdir == "RL"
  for _, box in ipairs(graph.boxes) do
    measure(box, how)
    box.across, box.along = horizontal and box.height or box.width, horizontal and box.width or box.height
  end
  local across, along = layout.place(graph.boxes, graph.edges)
  local function place(x, y)
    if backwards then y = along - y end
    if horizontal then x, y = y, x end
    return x + MARGIN, y + MARGIN
  end
  local drawing = svg.new((horizontal and along or across) + 2 * MARGIN, (horizontal and across or along) + 2 * MARGIN)
  drawing:add("rect", { width = drawing.width, height = drawing.height, fill = "#ffffff" })
  for _, edge in ipairs(graph.edges) do draw_edge(drawing, edge.points, place, horizontal) end
  for _, box in ipairs(graph.boxes) do
    local x, y = place(box.x, box.y + box.along / 2)
    draw_box(drawing, box, x - box.width / 2, y - box.height / 2)
  end
  return drawing, ("model %s: %d layers"):format(model.name, #graph.boxes)
end

---- Graphviz -------------------------------------------------------------------------------------------------------------------------

-- A string of Graphviz' language: https://graphviz.org/doc/info/lang.html.
local function quoted(text)
  return '"' .. text:gsub('[\\"]', "\\%0"):gsub("\n", "\\n") .. '"'
end

local function to_dot(model, graph, how)
  local dots = how.dpi and " dpi=" .. how.dpi .. ";" or ""
  local lines = { "digraph " .. quoted(model.name) .. " {", "  rankdir=" .. how.rankdir .. ";" .. dots,
                  '  node [shape=box, style="rounded,filled", fontname="Helvetica"];' }
  for i, box in ipairs(graph.boxes) do
    local fill, stroke = colors_of(box.class)
    local texts = {}
    for k, line in ipairs(lines_of(box, how)) do texts[k] = line.text end
    local label = quoted(table.concat(texts, "\n"))
    lines[#lines + 1] = ("  n%d [label=%s, fillcolor=%s, color=%s];"):format(i, label, quoted(fill), quoted(stroke))
  end
  for _, edge in ipairs(graph.edges) do lines[#lines + 1] = ("  n%d -> n%d;"):format(edge[1], edge[2]) end
  return table.concat(lines, "\n") .. "\n}\n"
end

-- The graph as a drawing, and what it shows in words.
function plot.draw(model, options)
  local how = check_options(options)
  return drawn(model, graph_of(model, how.expand), how)
end

-- The text of a file for Graphviz.
function plot.dot(model, options)
  local how = check_options(options)
  return to_dot(model, graph_of(model, how.expand), how)
end

return plot

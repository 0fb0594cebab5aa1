-- summary.lua: model:summary() as Keras prints it (keras.src.utils.summary_utils, rich's tables).
--
-- The text is made in two steps: add_rows makes a list of cells for each layer, then row() breaks and aligns them for the widths that
-- column_widths gives. Widths are counted in characters of UTF-8, each of which takes one column of a terminal; the widths of cells include
-- a space on both sides.

local native = require "flow.ffi"
local object = require "flow.object"
local symbolic = require "flow.layers.symbolic"
local log = require "flow.log"
local models = require "flow.model"
local errors = require "flow.errors"

local C = native.C
local takes = require("flow.signature").takes
local OPTIONS = "{ line_length?, expand_nested: boolean = false, show_trainable: boolean = false, layer_range?: list }"
local Model = models.Model

-- class_of(layer): the class of an operation, which files know.
local summary = {}

-- 3989285 -> 3,989,285
local function thousands(n)
  local text = ("%d"):format(n)
  local count
  repeat text, count = text:gsub("^(%-?%d+)(%d%d%d)", "%1,%2") until count == 0
  return text
end

-- Units of 1024, as Keras: "15.22 MB".
local function bytes_text(bytes)
  for _, unit in ipairs { "B", "KB", "MB", "GB", "TB" } do
    if bytes < 1024 then return ("%.2f %s"):format(bytes, unit) end
    bytes = bytes / 1024
  end
  return ("%.2f PB"):format(bytes)
end

-- The number of elements of variables, and their bytes.
local function size_of(variables)
  local count, bytes = 0, 0
  for _, v in ipairs(variables) do
    count = count + v.size
    bytes = bytes + v.size * C.flow_dtype_size(native.dtype(v.dtype))
  end
  return count, bytes
end

-- Number of characters of UTF-8 text.
local function length(text)
  return select(2, text:gsub("[^\128-\191]", ""))
end

-- A text of at most `width` characters, of which the last is "…" if something was cut off. width: from 1.
local function cut(text, width)
  if length(text) <= width then return text end
  return text:match(("[^\128-\191][\128-\191]*"):rep(width - 1)) .. "…"
end

-- Text broken at spaces into lines of at most `width`; a longer word is cut. The first line keeps its indentation.
local function wrap(text, width)
  local lines, line, indentation = {}, "", text:match("^ *")
  for word in text:gmatch("%S+") do
    word, indentation = cut(indentation .. word, width), ""
    if line == "" then line = word
    elseif length(line) + 1 + length(word) <= width then line = line .. " " .. word
    else
      lines[#lines + 1] = line
      line = word
    end
  end
  lines[#lines + 1] = line
  return lines
end

-- A horizontal line of the table.
local function rule(widths, left, fill, middle, right)
  local parts = {}
  for i, width in ipairs(widths) do parts[i] = fill:rep(width) end
  return left .. table.concat(parts, middle) .. right
end

local ALIGNED = { ["Param #"] = 1, Trainable = 0.5 }      -- share of the space on the left; else all of it is on the right

-- Appends the lines of a row of cells to `out`. edge: the character between cells.
local function row(widths, header, cells, edge, out)
  local columns, height = {}, 1
  for i, cell in ipairs(cells) do
    columns[i] = wrap(cell, widths[i] - 2)
    height = math.max(height, #columns[i])
  end
  for line = 1, height do
    local parts = {}
    for i, column in ipairs(columns) do
      local text = column[line] or ""
      local space = (" "):rep(widths[i] - 2 - length(text))
      local left = math.floor(#space * (ALIGNED[header[i]] or 0))
      parts[i] = " " .. space:sub(1, left) .. text .. space:sub(left + 1) .. " "
    end
    out[#out + 1] = edge .. table.concat(parts, edge) .. edge
  end
end

-- A shape as the summary shows it: (None), where Python writes (None,).
local function shape_text(shape)
  return (symbolic.shape_text(shape):gsub(",%)$", ")"))
end

-- The output shape of the layer's last call in a model, of the call that built it, or, of a model with a graph, its own.
local function output_shape(layer)
  local node, parts = layer._nodes[#layer._nodes], {}
  local known = not node and rawget(layer, "_output_shape")
  if known then return shape_text(known) end
  for i, output in ipairs(node and node.outputs or rawget(layer, "outputs") or {}) do parts[i] = shape_text(output.shape) end
  if #parts < 2 then return parts[1] or "?" end
  return (node and "[%s]" or "(%s)"):format(table.concat(parts, ", "))
end

-- The inputs of the layer's calls in this model: name[call][output], counted from 0 as in Keras.
local function connections(model, layer)
  local parts = {}
  for _, node in ipairs(layer._nodes) do
    for _, input in ipairs(model._depths[node] and node.inputs or {}) do
      parts[#parts + 1] = ("%s[%d][%d]"):format(input.layer.name, input.node.position - 1, input.index - 1)
    end
  end
  return #parts > 0 and table.concat(parts, ", ") or "-"
end

-- Whether a model has no branches, and so prints three columns: one call with one input at every depth, no layer called twice.
local function is_linear(model)
  local order = rawget(model, "_order")
  if not order or object.class_of(model).name == "Sequential" then return true end
  local depths, layers = {}, {}      -- that were met
  for _, node in ipairs(order) do
    local depth = model._depths[node]
    if #node.inputs > 1 or depths[depth] or layers[node.layer] then return false end
    depths[depth], layers[node.layer] = true, true
  end
  return true
end

-- The widths of the columns for a table `total` columns wide: Keras' positions (summary_utils.print_summary), rounded down, less the edges.
local function column_widths(total, linear, show_trainable)
  local positions = linear and { 0.45, 0.8, 1 } or { 0.3, 0.56, 0.74, 1 }
  if show_trainable then
    for i, position in ipairs(positions) do positions[i] = position * 0.9 end
    positions[#positions + 1] = 1
  end
  local widths, before = {}, 0
  for i, position in ipairs(positions) do
    local at = math.floor(total * position)
    widths[i] = at - before - (i == #positions - 1 and 2 or 1)
    before = at
  end
  return widths
end

-- The layers from the first that one of two patterns fits to the last that the other fits, whichever comes first.
local function in_range(layers, range)
  if not range then return layers end
  if #range ~= 2 or type(range[1]) ~= "string" or type(range[2]) ~= "string" then
    errors.raise("summary: layer_range is a list of two names of layers, or patterns of them, got %s", errors.describe(range))
  end
  local lowest, highest = {}, {}
  for k = 1, 2 do
    for i, layer in ipairs(layers) do
      if layer.name == range[k] or layer.name:find("^" .. range[k]) then lowest[k], highest[k] = lowest[k] or i, i end
    end
    if not lowest[k] then errors.raise("summary: layer_range: the model has no layer %q", range[k]) end
  end
  if lowest[1] > highest[2] then lowest[1], highest[2] = lowest[2], highest[1] end
  return { unpack(layers, lowest[1], highest[2]) }
end

-- The layers of a model, and the operations between them, which Keras shows, too.
local function rows_of(model)
  return object.class_of(model).name ~= "Sequential" and rawget(model, "_graph_layers") or model.layers
end

-- Rows of cells for the layers of model `inside` and, with expand_nested, of the models among them; model: the one that is shown.
local function add_rows(rows, model, inside, options, linear, level)
  local all = rows_of(inside)
  for _, layer in ipairs(level == 0 and in_range(all, options.layer_range) or all) do
    local indentation = level > 0 and ("   "):rep(level) .. "└ " or ""
    local count = layer.built and thousands(layer:count_params()) or "0 (unbuilt)"
    local class_name = rawget(layer, "_operation") and summary.class_of(layer) or layer.class_name
    local cells = { ("%s%s (%s)"):format(indentation, layer.name, class_name), layer.built and output_shape(layer) or "?", count }
    if not linear then cells[4] = connections(model, layer) end
    if options.show_trainable then cells[#cells + 1] = #layer.weights == 0 and "-" or layer.trainable and "Y" or "N" end
    rows[#rows + 1] = cells
    if options.expand_nested and object.is(layer, Model) then add_rows(rows, model, layer, options, linear, level + 1) end
  end
  return rows
end

-- The table as one string; options: line_length, expand_nested, show_trainable, layer_range.
takes(OPTIONS)
function Model:summary_text(options)
  local linear = is_linear(self)
  local columns = C.flow_terminal_columns()
  local total = options.line_length or math.min((linear and 88 or 108) + (options.show_trainable and 12 or 0),
    (columns > 0 and columns or 80) - 4)
  if type(total) ~= "number" or not (total >= 40) then
    errors.raise("summary: line_length is a number from 40, got %s", errors.describe(total))
  end
  local widths = column_widths(total, linear, options.show_trainable)
  local out = { ('Model: "%s"'):format(self.name) }
  local header = { "Layer (type)", "Output Shape", "Param #" }
  if not linear then header[4] = "Connected to" end
  if options.show_trainable then header[#header + 1] = "Trainable" end
  out[#out + 1] = rule(widths, "┏", "━", "┳", "┓")
  row(widths, header, header, "┃", out)
  out[#out + 1] = rule(widths, "┡", "━", "╇", "┩")
  for i, cells in ipairs(add_rows({}, self, self, options, linear, 0)) do
    if i > 1 then out[#out + 1] = rule(widths, "├", "─", "┼", "┤") end
    row(widths, header, cells, "│", out)
  end
  out[#out + 1] = rule(widths, "└", "─", "┴", "┘")

  local trainable, trainable_bytes = size_of(self.trainable_variables)
  local other, other_bytes = size_of(self.non_trainable_variables)
  local optimizer, optimizer_bytes = 0, 0
  if self._compiled then
    local variables = self._compiled.optimizer.variables
    if #variables > 2 then optimizer, optimizer_bytes = size_of(variables) end      -- it has slots: two are iterations and learning rate
  end
  local function line(what, count, bytes)
    out[#out + 1] = (" %s params: %s (%s)"):format(what, thousands(count), bytes_text(bytes))
  end
  line("Total", trainable + other + optimizer, trainable_bytes + other_bytes + optimizer_bytes)
  line("Trainable", trainable, trainable_bytes)
  line("Non-trainable", other, other_bytes)
  if optimizer > 0 then line("Optimizer", optimizer, optimizer_bytes) end
  return table.concat(out, "\n") .. "\n"
end

-- Prints the model's layers, shapes and sizes. { print_fn = f } sends each line to f, expand_nested = true also shows the layers of
-- models inside, show_trainable = true which layers are trained, layer_range = { "first", "last" } only those layers.
takes((OPTIONS:gsub(" }", ", print_fn?: callable }")))
function Model:summary(options)
  local text = self:summary_text { line_length = options.line_length, expand_nested = options.expand_nested,
                                   show_trainable = options.show_trainable, layer_range = options.layer_range }
  if not options.print_fn then return log.print("%s", text) end
  for line in text:gmatch("([^\n]*)\n") do options.print_fn(line) end
end

return summary

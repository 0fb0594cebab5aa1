-- confusion.lua: flow.plot.confusion_matrix: which classes a model takes for which, as a tensor and as a picture. Counting is done by
-- flow.math.confusion_matrix; here scores become labels, counts become shares, and the cells are drawn: a square for each pair of classes,
-- rows for the true class, columns for the predicted one. Called by plot/init.lua, which loads it on demand.

local errors = require "flow.errors"
local native = require "flow.ffi"
local flow_math = require "flow.tensor.math"
local svg = require "flow.plot.svg"

local confusion = {}

local OPTIONS = { class_names = true, file = true, normalize = true, title = true, num_classes = true, weights = true }
local WAYS = { ["true"] = 2, pred = 1, all = 0 }      -- the axis over which shares add up to 1; 0: over all
local INK, MUTED = "#24292f", "#66707b"
local LOW, HIGH = { 247, 250, 253 }, { 23, 92, 150 }

-- Labels out of labels, of {samples, classes} scores, or of one-hot rows. What is not a tensor of two axes is returned unchanged, and is
-- checked where it is counted.
local function labels_of(value)
  if native.is_tensor(value) and value.rank == 2 and value.shape[2] > 1 then return value:classes() end
  return value
end

-- The shares of a square matrix, given as nested lists, as new nested lists. axis: 2: each row adds up to 1, 1: each column, 0: all cells
-- do. A row, column or matrix whose sum is not above 0 has shares of 0.
local function shares(cells, axis)
  local n, rows, columns, all = #cells, {}, {}, 0
  for i = 1, n do
    for j = 1, n do
      rows[i], columns[j], all = (rows[i] or 0) + cells[i][j], (columns[j] or 0) + cells[i][j], all + cells[i][j]
    end
  end
  local result = {}
  for i = 1, n do
    result[i] = {}
    for j = 1, n do
      local whole = axis == 2 and rows[i] or axis == 1 and columns[j] or all
      result[i][j] = whole > 0 and cells[i][j] / whole or 0
    end
  end
  return result
end

-- share: of the largest cell; negative weights and NaN are drawn as 0.
local function color(share)
  local parts = {}
  share = share >= 0 and math.min(share, 1) or 0
  for i = 1, 3 do parts[i] = math.floor(LOW[i] + (HIGH[i] - LOW[i]) * share + 0.5) end
  return ("#%02x%02x%02x"):format(unpack(parts))
end

-- What stands in a cell: a share with two digits, a count or a sum of weights with up to six.
local function value_text(value, is_share)
  if is_share then return value == 0 and "0" or value == 1 and "1" or ("%.2f"):format(value) end
  return ("%.6g"):format(value)
end

-- The picture of nested lists, and what it shows in words. names: of the classes, as many as there are rows. Cells are as wide as their
-- numbers need. Above 30 classes there are no numbers, only colours; names are left out where a cell is lower than a line of text, and
-- slant where they are wider than a cell.
local function draw(cells, names, is_share, title)
  local n, most, longest, widest = #cells, 0, 0, 0
  for i = 1, n do
    longest = math.max(longest, math.min(svg.text_width(names[i], 12), 150))
    for j = 1, n do
      most = math.max(most, cells[i][j])
      widest = math.max(widest, svg.text_width(value_text(cells[i][j], is_share), 12))
    end
  end
  local numbers = n <= 30
  local cell = numbers and math.max(n <= 12 and 44 or 30, widest + 10) or math.max(6, math.floor(900 / n))
  local labelled = cell >= 12
  local upright = longest <= cell - 6
  local head = title and 44 or 16
  local left, below = 40 + (labelled and longest + 10 or 0), labelled and (upright and 24 or longest * 0.72 + 22) or 10
  local side = n * cell
  local drawing = svg.new(math.max(left + side + 24, 260), head + side + below + 34)
  drawing:add("rect", { width = drawing.width, height = drawing.height, fill = "#ffffff" })
  if title then drawing:text(left, 28, title, { size = 16, weight = "600", fill = INK, width = side }) end
  for i = 1, n do
    for j = 1, n do
      local value = cells[i][j]
      local share = most > 0 and value / most or 0
      local x, y = left + (j - 1) * cell, head + (i - 1) * cell
      drawing:add("rect", { x = x, y = y, width = cell, height = cell, fill = color(share), stroke = "#ffffff",
                            stroke_width = cell > 20 and 1.5 or 0 },
        ("%s predicted as %s: %s"):format(names[i], names[j], value_text(value, is_share)))
      if numbers then
        drawing:text(x + cell / 2, y + cell / 2 + 4, value_text(value, is_share),
          { size = 12, anchor = "middle", fill = share > 0.55 and "#ffffff" or value == 0 and "#a9b2bb" or INK })
      end
    end
    if labelled then
      local middle = (i - 0.5) * cell
      drawing:text(left - 8, head + middle + 4, names[i], { size = 12, anchor = "end", fill = INK, width = 150 })
      drawing:text(left + middle + (upright and 0 or 4), head + side + 16, names[i],
        { size = 12, anchor = upright and "middle" or "end", fill = INK, width = 150, rotate = not upright and -45 or nil })
    end
  end
  drawing:text(18, head + side / 2, "true", { size = 12.5, anchor = "middle", fill = MUTED, rotate = -90 })
  drawing:text(left + side / 2, drawing.height - 12, "predicted", { size = 12.5, anchor = "middle", fill = MUTED })
  return drawing, title or "confusion matrix"
end

-- The names of n classes as texts: those given, or 0, 1, ... Raises where there are more or fewer names than classes.
local function check_names(names, n)
  local list = {}
  if names ~= nil and type(names) ~= "table" then
    errors.raise("flow.plot.confusion_matrix: class_names is a list of strings, got %s", errors.describe(names))
  end
  if names and #names ~= n then errors.raise("flow.plot.confusion_matrix: %d class_names for %d classes", #names, n) end
  for i = 1, n do list[i] = names and tostring(names[i]) or tostring(i - 1) end
  return list
end

-- The matrix {classes, classes} of labels y_true (rows) and y_pred (columns; scores {samples, classes} are turned into labels).
-- options: class_names, file (.svg or .png), title, weights, num_classes, normalize: "true" (or true): shares of each row, "pred": of each
-- column, "all". The result is int32, or float32 with weights or shares. The number of classes is num_classes, else that of class_names,
-- else one more than the largest label. The options and the ending of the file are checked before anything is computed.
function confusion.matrix(y_true, y_pred, options)
  local what = "flow.plot.confusion_matrix"
  options = errors.check_options(what, options, OPTIONS)
  local way = options.normalize == true and "true" or options.normalize or nil
  if way and not WAYS[way] then
    errors.raise("%s: normalize is \"true\", \"pred\" or \"all\", got %s", what, errors.describe(options.normalize))
  end
  if options.title ~= nil and type(options.title) ~= "string" then
    errors.raise("%s: title is a string, got %s", what, errors.describe(options.title))
  end
  local plot = require "flow.plot"
  if options.file ~= nil then plot.ending(what, options.file, plot.PICTURES) end
  local classes = options.num_classes or type(options.class_names) == "table" and #options.class_names or nil
  local fractions = way or options.weights
  local matrix = flow_math.confusion_matrix(labels_of(y_true), labels_of(y_pred),
    { num_classes = classes, weights = options.weights, dtype = fractions and "float32" or "int32" })
  local names = check_names(options.class_names, matrix.shape[1])
  local cells = matrix:totable()
  if way then
    cells = shares(cells, WAYS[way])
    matrix = require("flow.tensor").tensor(cells)
  end
  if options.file then plot.write(what, options.file, draw(cells, names, way ~= nil, options.title)) end
  return matrix
end

return confusion

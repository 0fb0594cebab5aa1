-- model:plot, flow.plot.confusion_matrix: pictures of models and predictions.
local support = require "spec.support.init"
local flow = require "flow"
local layout = require "flow.plot.layout"
local nets = require "flow.cli.bench_nets"
local layers = flow.layers

local function message_of(f, ...)
  local values = { ... }
  return support.message_of(function() f(unpack(values)) end)
end

local function written(ending, write)
  local path = support.path(ending)
  write(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  os.remove(path)
  return text
end

local count = support.count

-- Boxes as the picture has them: { x, y, width, height }, the background left out.
local function boxes_of(text)
  local boxes = {}
  for rect in text:gmatch("<rect [^>]*rx=[^>]*>") do
    local box = {}
    for _, name in ipairs { "x", "y", "width", "height" } do box[name] = tonumber(rect:match(' ' .. name .. '="([^"]*)"')) end
    boxes[#boxes + 1] = box
  end
  return boxes
end

local function assert_apart(boxes)
  for i = 1, #boxes do
    for k = i + 1, #boxes do
      local a, b = boxes[i], boxes[k]
      assert.is_true(a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y, i .. " and " .. k)
    end
  end
end

describe("model:plot", function()
  before_each(function() flow.clear_session() end)

  it("draws a box a layer and an arrow a connection, in every direction", function()
    local model = nets.unet()
    for _, direction in ipairs { "TB", "BT", "LR", "RL" } do
      local options = { show_shapes = true, show_layer_names = true, rankdir = direction }
      local text = written(".svg", function(path) model:plot(path, options) end)
      local boxes = boxes_of(text)
      assert.are.equal(#model.layers, #boxes)
      assert_apart(boxes)
      assert.are.equal(2 * (#model.layers - 1 + 2), count(text, "<path "))      -- a curve and its head; two skip connections
      assert.is_truthy(text:find("(None, 48, 48, 3) → (None, 48, 48, 16)", 1, true))
      assert.is_nil(text:find("script", 1, true) or text:find("nan", 1, true))
      local first, last = boxes[1], boxes[#boxes]
      if direction == "TB" then assert.is_true(first.y < last.y) end
      if direction == "RL" then assert.is_true(first.x > last.x) end
    end
  end)

  it("leads every edge onwards and leaves room for long ones", function()
    local boxes, edges = {}, { { 1, 2 }, { 2, 3 }, { 3, 4 }, { 1, 4 }, { 1, 3 }, { 5, 4 } }
    for i = 1, 5 do boxes[i] = { across = 100, along = 40 } end
    local across, along = layout.place(boxes, edges)
    for _, edge in ipairs(edges) do
      assert.is_true(boxes[edge[1]].y + 40 < boxes[edge[2]].y)
      local points = edge.points
      assert.are.equal(boxes[edge[1]].x, points[1])
      assert.are.equal(boxes[edge[2]].y, points[#points])
      for i = 3, #points, 2 do assert.is_true(points[i + 1] >= points[i - 1]) end
    end
    assert.is_true(across > 100 and along == 4 * 40 + 3 * 34)
    assert.is_true(boxes[5].y == boxes[3].y)      -- beside what it leads to together with
    for i = 3, #edges[4].points - 2, 2 do       -- the edge over two layers keeps clear of their boxes
      local x, y = edges[4].points[i], edges[4].points[i + 1]
      for b = 2, 3 do
        assert.is_true(y < boxes[b].y or y > boxes[b].y + 40 or math.abs(x - boxes[b].x) >= 50)
      end
    end
  end)

  it("unfolds nested models", function()
    local a, b = layers.Dense(3, { name = "a" }), layers.Dense(2, { name = "b" })
    local inner = flow.Sequential({ layers.Input { 4 }, a, b }, { name = "inner" })
    local input = flow.Input { 4 }
    local model = flow.Model { inputs = input, outputs = layers.Add()({ inner(input), layers.Dense(2)(input) }) }
    local function plotted(options) return written(".svg", function(path) model:plot(path, options) end) end
    assert.are.equal(4, #boxes_of(plotted()))
    local text = plotted { expand_nested = true, show_layer_names = true }
    assert.are.equal(5, #boxes_of(text))
    assert.is_truthy(text:find(">inner/a<", 1, true) and text:find(">inner/b<", 1, true))
    assert.are.equal(2 * 5, count(text, "<path "))
  end)

  it("writes Graphviz", function()
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2, { name = 'say "hi"' }) }
    local text = written(".dot", function(path) model:plot(path, { show_layer_names = true, show_dtype = true }) end)
    assert.is_truthy(text:find("rankdir=TB", 1, true) and text:find("n1 -> n2;", 1, true))
    assert.is_truthy(text:find('label="Dense\\nsay \\"hi\\"\\nfloat32"', 1, true))
  end)

  it("tells activations and what is trained where it is asked to", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3, { activation = "relu" }), layers.Dense(2), layers.ReLU(),
      layers.Activation(function(x) return x * 2 end) }
    model.layers[2].trainable = false
    local text = written(".dot", function(path)
      flow.utils.plot_model(model, path, { show_layer_activations = true, show_trainable = true })
    end)
    local labels = {}
    for label in text:gmatch 'label="([^"]*)"' do labels[#labels + 1] = label end
    assert.same({ "InputLayer", "Dense\\nactivation: relu\\ntrainable: true", "Dense\\nactivation: linear\\ntrainable: false", "ReLU",
      "Activation\\nactivation: function" }, labels)
  end)

  it("has as many dots an inch as it is asked to", function()
    local model, path = flow.Sequential { layers.Input { 4 }, layers.Dense(3) }, support.path(".png")
    finally(function() os.remove(path) end)
    local function shape_with(dpi)
      flow.utils.plot_model(model, path, { dpi = dpi })
      return flow.image.decode_png(flow.io.read_file(path)).shape
    end
    local usual, double = shape_with(nil), shape_with(192)
    assert.same({ 2 * usual[1], 2 * usual[2] }, { double[1], double[2] })
    assert.matches("dpi=50;", written(".dot", function(file) model:plot(file, { dpi = 50 }) end))
    assert.matches("dpi, dots an inch, is a number from 24 to 2400, got the number 0", message_of(model.plot, model, path, { dpi = 0 }))
  end)

  it("draws a model that is not built yet, and names what it cannot do", function()
    local model = flow.Sequential { layers.Flatten(), layers.Dense(2) }
    local text = written(".svg", function(path) model:plot(path, { show_shapes = true }) end)
    assert.are.equal(2, #boxes_of(text))
    assert.are.equal('model:plot: "m.jpg": pictures are written as .svg or .png or .dot files', message_of(model.plot, model, "m.jpg"))
    assert.is_truthy(message_of(model.plot, model, "m.svg", { rankdir = "UP" }):find('rankdir is "TB", "BT", "LR" or "RL"', 1, true))
    assert.is_truthy(message_of(model.plot, model, "m.svg", { dotted = 200 }):find('unknown option "dotted"', 1, true))
  end)
end)

describe("confusion matrices", function()
  it("count labels by what was predicted, as tf.math.confusion_matrix", function()
    local matrix = flow.math.confusion_matrix({ 1, 2, 4 }, { 2, 2, 4 })      -- the example of TensorFlow's documentation
    assert.are.same({ { 0, 0, 0, 0, 0 }, { 0, 0, 1, 0, 0 }, { 0, 0, 1, 0, 0 }, { 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 1 } }, matrix:totable())
    assert.are.equal("int32", matrix.dtype)
    local weighted = flow.math.confusion_matrix({ 0, 1, 1 }, flow.tensor { { 1 }, { 1 }, { 0 } },
      { weights = { 0.5, 2, 4 }, num_classes = 3, dtype = "float32" })
    assert.are.same({ { 0, 0.5, 0 }, { 4, 2, 0 }, { 0, 0, 0 } }, weighted:totable())
  end)

  it("are drawn, with scores turned into labels and shares of each row", function()
    local truth = flow.tensor({ 0, 0, 1, 1 }, { dtype = "int32" })
    local scores = flow.tensor { { 0.9, 0.1 }, { 0.2, 0.8 }, { 0.1, 0.9 }, { 0.3, 0.7 } }
    local matrix
    local text = written(".svg", function(path)
      matrix = flow.plot.confusion_matrix(truth, scores, { class_names = { "<cat>", "dog" }, file = path, normalize = "true" })
    end)
    assert.are.same({ { 0.5, 0.5 }, { 0, 1 } }, matrix:totable())
    assert.is_truthy(text:find("<title>&lt;cat&gt; predicted as dog: 0.50</title>", 1, true))
    assert.are.equal(5, count(text, "<rect "))
    assert.are.same({ { 0.25, 0.25 }, { 0, 0.5 } }, flow.plot.confusion_matrix(truth, scores, { normalize = "all" }):totable())
    assert.are.same({ { 1, 1 }, { 0, 2 } }, flow.plot.confusion_matrix(truth, scores):totable())
  end)

  it("name what is wrong", function()
    local matrix = flow.math.confusion_matrix
    assert.is_truthy(message_of(matrix, { 0, 1 }, { 0 }):find("2 labels for 1 predictions", 1, true))
    assert.is_truthy(message_of(matrix, { 0, 5 }, { 0, 1 }, { num_classes = 3 }):find("there is a label 5", 1, true))
    assert.is_truthy(message_of(matrix, { 0, -1 }, { 0, 1 }):find("sample 1 has the negative label -1", 1, true))
    local plot = flow.plot.confusion_matrix
    assert.is_truthy(message_of(plot, { 0, 1 }, { 0, 1 }, { class_names = { "a" } }):find("label 1", 1, true))
    assert.is_truthy(message_of(plot, { 0 }, { 0 }, { normalize = "rows" }):find('normalize is "true", "pred" or "all"', 1, true))
    assert.is_truthy(message_of(plot, { 0 }, { 0 }, { file = "a.jpg" }):find("pictures are written as .svg or .png files", 1, true))
  end)
end)

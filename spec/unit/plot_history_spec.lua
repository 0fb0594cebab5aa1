-- history:plot: the curves of a training as an SVG picture and as text.
local support = require "spec.support.init"
local flow = require "flow"
local scale = require "flow.plot.scale"
local svg = require "flow.plot.svg"

local function message_of(f, ...)
  local values = { ... }
  return support.message_of(function() f(unpack(values)) end)
end

local function history_of(epochs, results)
  local history = flow.callbacks.History()
  for i = 1, epochs do history:on_epoch_end(i - 1, results(i)) end
  return history
end

local function plotted(history, options)
  local path = support.path(".svg")
  history:plot(path, options)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  os.remove(path)
  return text
end

-- An XML parser of the little that a picture may be: checks that elements close in order; counts them by name.
local function elements_of(text)
  local stack, counts = {}, {}
  local body = text:gsub("^<%?xml.-%?>", "")
  for close, name, rest in body:gmatch("<(/?)([%a]+)([^<>]*)>") do
    if close == "/" then
      assert.are.equal(table.remove(stack), name)
    else
      counts[name] = (counts[name] or 0) + 1
      if not rest:find("/$") then stack[#stack + 1] = name end
    end
  end
  assert.are.equal(0, #stack)
  assert.is_nil(body:gsub("<[^<>]*>", ""):find("[<>]"))
  return counts
end

local function labels_of(axis)
  local labels = {}
  for i, tick in ipairs(axis.ticks) do labels[i] = tick.label end
  return table.concat(labels, " ")
end

describe("axes", function()
  it("have round ticks that take in all values", function()
    assert.are.equal("0.0 0.5 1.0 1.5 2.0 2.5", labels_of(scale.linear(0.04, 2.31, 5)))
    assert.are.equal("0.90 0.95 1.00 1.05 1.10", labels_of(scale.linear(1, 1, 5)))
    assert.are.equal("0 2e-8 4e-8 6e-8 8e-8 1.0e-7", (labels_of(scale.linear(0, 9.9e-8, 5)):gsub("1e%-7", "1.0e-7")))
    assert.are.equal("-2000 0 2000 4000", labels_of(scale.linear(-1900, 4000, 4)))
    assert.are.equal("0.1 0.2 0.5 1 2 5 10", labels_of(scale.logarithmic(0.3, 3.3, 5)))
    assert.are.equal("1e-6 0.0001 0.01 1", labels_of(scale.logarithmic(2e-6, 0.4, 4)))
  end)

  it("of epochs are whole numbers from the first on", function()
    assert.are.equal("1", labels_of(scale.epochs(1, 1, 6)))
    assert.are.equal("1 2 3", labels_of(scale.epochs(1, 3, 6)))
    assert.are.equal("1 50 100 150 200", labels_of(scale.epochs(1, 200, 5)))
  end)
end)

describe("history:plot(file)", function()
  it("draws a panel a metric, with its validation values, and an axis of epochs", function()
    local text = plotted(history_of(3, function(i)
      return { loss = 2 / i, val_loss = 2.2 / i, accuracy = 0.2 * i, val_accuracy = 0.1 * i }
    end))
    local counts = elements_of(text)
    assert.are.equal(4, counts.polyline)
    assert.are.equal(12, counts.circle)
    assert.is_truthy(text:find("<title>val_loss: 1.1 in epoch 2</title>", 1, true))
    assert.is_truthy(text:find(">epoch</text>", 1, true))
    assert.is_nil(text:find("script", 1, true) or text:find("href", 1, true))
  end)

  it("breaks a curve where a value is not finite, and marks the place", function()
    local text = plotted(history_of(9, function(i) return { loss = i == 3 and 0 / 0 or i == 7 and math.huge or i } end))
    local counts = elements_of(text)
    assert.are.equal(3, counts.polyline)
    assert.is_truthy(text:find("<title>loss: nan in epoch 3</title>", 1, true))
    assert.is_truthy(text:find("<title>loss: inf in epoch 7</title>", 1, true))
    assert.is_truthy(plotted(history_of(2, function() return { loss = 0 / 0 } end)):find("no finite value", 1, true))
    assert.is_nil(text:find("=\"nan") or text:find("=\"-?inf") or text:find(",nan") or text:find(",inf"))
  end)

  it("draws one epoch, and two hundred without a dot for each", function()
    assert.are.equal(1, elements_of(plotted(history_of(1, function() return { loss = 0.7 } end))).circle)
    assert.are.equal(1, elements_of(plotted(history_of(200, function(i) return { loss = 1 / i } end))).circle)
  end)

  it("puts values of some epochs where they belong", function()
    local history = history_of(6, function(i) return { loss = 1, val_loss = i % 3 == 0 and i or nil } end)
    local text = plotted(history)
    assert.is_truthy(text:find("val_loss: 3 in epoch 3", 1, true) and text:find("val_loss: 6 in epoch 6", 1, true))
    assert.are.same({ 2, 5 }, history.epochs.val_loss)
  end)

  it("escapes names and cuts long ones, which stay as tooltips", function()
    local name = "<b>&\"'" .. ("long_name_"):rep(12) .. "\1\255"
    local text = plotted(history_of(2, function(i) return { [name] = i } end), { title = "a < b" })
    elements_of(text)
    assert.is_truthy(text:find("<title>&lt;b&gt;&amp;&quot;&#39;long_name_", 1, true) and text:find("…", 1, true))
    assert.is_truthy(text:find("a &lt; b", 1, true))
    assert.are.equal("\239\191\189é\239\191\189", svg.escape("\1é\255"))
  end)

  it("takes a logarithmic scale, and says which values have no place on it", function()
    local text = plotted(history_of(4, function(i) return { loss = i == 2 and 0 or 10 ^ -i } end), { yscale = "log" })
    assert.is_truthy(text:find("<title>loss: 0 in epoch 2</title>", 1, true))
    assert.are.equal(1, elements_of(text).polyline)
  end)

  it("is there after fit", function()
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse" }
    local x, y = flow.random.normal { 16, 2 }, flow.zeros { 16, 1 }
    local history = model:fit(x, y, { epochs = 3, verbose = 0, validation_split = 0.25, validation_freq = 2 })
    assert.are.same({ 1 }, history.epochs.val_loss)
    assert.is_truthy(plotted(history):find("val_loss", 1, true))
  end)

  it("names what it cannot do", function()
    local history = history_of(1, function() return { loss = 1 } end)
    assert.are.equal('history:plot: "a.pdf": pictures are written as .svg or .png files', message_of(history.plot, history, "a.pdf"))
    assert.is_truthy(message_of(history.plot, history, "a.svg", { metrics = { "los" } }):find('did you mean "loss"?', 1, true))
    assert.is_truthy(message_of(history.plot, history, "a.svg", { color = 1 }):find('unknown option "color"', 1, true))
    local empty = flow.callbacks.History()
    assert.is_truthy(message_of(empty.plot, empty, "a.svg"):find("the history is empty", 1, true))
    assert.is_truthy(message_of(history.plot, history, "/no/such/folder/a.svg"):find("/no/such/folder/a.svg", 1, true))
  end)
end)

describe("history:plot()", function()
  it("shows the curves as characters, of ASCII if need be, and returns them", function()
    local messages = {}
    flow.log.sink = function(level, text) messages[#messages + 1] = { level, text } end
    local history = history_of(5, function(i) return { loss = 1 / i, val_loss = i == 2 and 0 / 0 or 1.2 / i } end)
    local text = history:plot { unicode = false, width = 50, height = 6 }
    flow.log.sink = nil
    assert.are.same({ { "print", text } }, messages)
    assert.is_nil(text:find("[\128-\255]"))
    local lines = 0
    for line in text:gmatch("([^\n]*)\n") do
      lines = lines + 1
      assert.is_true(#line <= 50, line)
    end
    assert.are.equal(9, lines)
    assert.is_truthy(text:find("* loss 0.2   o val_loss 0.24", 1, true) and text:find("1.0 +", 1, true))
    local braille = history:plot { unicode = true, width = 50 }
    assert.is_truthy(braille:find("\226[\160-\163]") and braille:find("┤", 1, true))
  end)
end)

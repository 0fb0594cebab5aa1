-- summary_spec.lua: model:summary() character by character as Keras 3 prints it on 80 columns without a terminal.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

local function flowers()
  return flow.Sequential {
    layers.Input { 180, 180, 3 }, layers.Rescaling(1 / 255),
    layers.Conv2D(16, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Conv2D(32, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Conv2D(64, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Flatten(), layers.Dense(128, { activation = "relu" }), layers.Dense(5),
  }
end

local FLOWERS = [[
Model: "sequential"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ rescaling (Rescaling)           │ (None, 180, 180, 3)    │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ conv2d (Conv2D)                 │ (None, 180, 180, 16)   │           448 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ max_pooling2d (MaxPooling2D)    │ (None, 90, 90, 16)     │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ conv2d_1 (Conv2D)               │ (None, 90, 90, 32)     │         4,640 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ max_pooling2d_1 (MaxPooling2D)  │ (None, 45, 45, 32)     │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ conv2d_2 (Conv2D)               │ (None, 45, 45, 64)     │        18,496 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ max_pooling2d_2 (MaxPooling2D)  │ (None, 22, 22, 64)     │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ flatten (Flatten)               │ (None, 30976)          │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dense (Dense)                   │ (None, 128)            │     3,965,056 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dense_1 (Dense)                 │ (None, 5)              │           645 │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 3,989,285 (15.22 MB)
 Trainable params: 3,989,285 (15.22 MB)
 Non-trainable params: 0 (0.00 B)
]]

local BRANCHES = [[
Model: "functional"
┏━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┓
┃ Layer (type)        ┃ Output Shape      ┃    Param # ┃ Connected to      ┃
┡━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━┩
│ input_layer         │ (None, 8, 8, 3)   │          0 │ -                 │
│ (InputLayer)        │                   │            │                   │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ conv2d (Conv2D)     │ (None, 8, 8, 4)   │        112 │ input_layer[0][0] │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ batch_normalization │ (None, 8, 8, 4)   │         16 │ conv2d[0][0]      │
│ (BatchNormalizatio… │                   │            │                   │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ dense (Dense)       │ (None, 8, 8, 4)   │         20 │ conv2d[0][0],     │
│                     │                   │            │ batch_normalizat… │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ add (Add)           │ (None, 8, 8, 4)   │          0 │ dense[0][0],      │
│                     │                   │            │ dense[1][0]       │
└─────────────────────┴───────────────────┴────────────┴───────────────────┘
 Total params: 148 (592.00 B)
 Trainable params: 140 (560.00 B)
 Non-trainable params: 8 (32.00 B)
]]

local UNBUILT = [[
Model: "sequential"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ dense (Dense)                   │ ?                      │   0 (unbuilt) │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 0 (0.00 B)
 Trainable params: 0 (0.00 B)
 Non-trainable params: 0 (0.00 B)
]]

-- Models in the fields of one that was not called yet.
local PARTS = [[
Model: "parts"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ functional (Functional)         │ (None, 3)              │            15 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ functional_1 (Functional)       │ ((None, 4), (None, 1)) │             5 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ sequential (Sequential)         │ (None, 7)              │            35 │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 55 (220.00 B)
 Trainable params: 55 (220.00 B)
 Non-trainable params: 0 (0.00 B)
]]

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  return lines
end

-- Of the same models made by Keras: summary(expand_nested=True, show_trainable=True).
local NESTED = [[
Model: "outer"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━┓
┃ Layer (type)                ┃ Output Shape          ┃    Param # ┃ Trai… ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━┩
│ mid (Sequential)            │ (None, 4)             │         74 │   Y   │
├─────────────────────────────┼───────────────────────┼────────────┼───────┤
│    └ dense_1 (Dense)        │ (None, 6)             │         30 │   Y   │
├─────────────────────────────┼───────────────────────┼────────────┼───────┤
│    └ inner (Sequential)     │ (None, 4)             │         44 │   N   │
├─────────────────────────────┼───────────────────────┼────────────┼───────┤
│       └ dense (Dense)       │ (None, 4)             │         28 │   N   │
├─────────────────────────────┼───────────────────────┼────────────┼───────┤
│       └ batch_normalization │ (None, 4)             │         16 │   N   │
│ (BatchNormalization)        │                       │            │       │
├─────────────────────────────┼───────────────────────┼────────────┼───────┤
│ dropout (Dropout)           │ (None, 4)             │          0 │   -   │
├─────────────────────────────┼───────────────────────┼────────────┼───────┤
│ dense_2 (Dense)             │ (None, 2)             │         10 │   Y   │
└─────────────────────────────┴───────────────────────┴────────────┴───────┘
 Total params: 84 (336.00 B)
 Trainable params: 40 (160.00 B)
 Non-trainable params: 44 (176.00 B)
]]
local NESTED_BRANCHES = [[
Model: "branchy"
┏━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━┓
┃ Layer (type)      ┃ Output Shape    ┃   Param # ┃ Connected to   ┃ Trai… ┃
┡━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━┩
│ in (InputLayer)   │ (None, 4)       │         0 │ -              │   -   │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│ mid (Sequential)  │ (None, 4)       │        74 │ in[0][0]       │   Y   │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│    └ dense_1      │ (None, 6)       │        30 │ -              │   Y   │
│ (Dense)           │                 │           │                │       │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│    └ inner        │ (None, 4)       │        44 │ -              │   N   │
│ (Sequential)      │                 │           │                │       │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│       └ dense     │ (None, 4)       │        28 │ -              │   N   │
│ (Dense)           │                 │           │                │       │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│       └           │ (None, 4)       │        16 │ -              │   N   │
│ batch_normalizat… │                 │           │                │       │
│ (BatchNormalizat… │                 │           │                │       │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│ dense_3 (Dense)   │ (None, 4)       │        20 │ in[0][0]       │   Y   │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│ add (Add)         │ (None, 4)       │         0 │ mid[1][0],     │   -   │
│                   │                 │           │ dense_3[0][0]  │       │
└───────────────────┴─────────────────┴───────────┴────────────────┴───────┘
 Total params: 94 (376.00 B)
 Trainable params: 50 (200.00 B)
 Non-trainable params: 44 (176.00 B)
]]

describe("summary", function()
  before_each(function() flow.clear_session() end)

  it("of the flower classifier", function()
    assert.same(lines_of(FLOWERS), lines_of(flowers():summary_text()))
  end)

  it("of a net with branches and a shared layer", function()
    local x = flow.Input { 8, 8, 3 }
    local h = layers.Conv2D(4, 3, { padding = "same" })(x)
    local shared = layers.Dense(4)
    local out = layers.Add()({ shared(h), shared(layers.BatchNormalization()(h)) })
    local model = flow.Model { inputs = x, outputs = out }
    shared(out)      -- a call outside of the model is not listed
    assert.same(lines_of(BRANCHES), lines_of(model:summary_text()))
  end)

  it("of a model that is not built, and of it built", function()
    local model = flow.Sequential { layers.Dense(2) }
    assert.same(lines_of(UNBUILT), lines_of(model:summary_text()))
    model:build { -1, 3 }
    assert.truthy(model:summary_text():find("│ dense (Dense)                   │ (None, 2)              │             8 │", 1, true))
  end)

  it("of models in the fields of a model", function()
    local x, y = flow.Input { 4 }, flow.Input { 4 }
    local Parts = flow.Model:extend "Parts"
    function Parts:init()
      self.one = flow.Model(x, layers.Dense(3)(x))
      self.two = flow.Model({ x, y }, { layers.Add() { x, y }, layers.Dense(1)(x) })
      self.three = flow.Sequential { layers.Input { 4 }, layers.Dense(7) }
    end
    assert.same(lines_of(PARTS), lines_of(Parts():summary_text()))
  end)

  it("of a functional model without branches has three columns and the Input", function()
    local x = flow.Input { 3 }
    local text = flow.Model { inputs = x, outputs = layers.Dense(2)(x) } :summary_text()
    assert.truthy(text:find("│ input_layer (InputLayer)        │ (None, 3)              │             0 │", 1, true))
    assert.falsy(text:find("Connected to", 1, true))
  end)

  it("shows operations between the layers by the names of their classes in Keras", function()
    local x = flow.Input { 8, 4 }
    local h = flow.concat({ flow.relu(x * 2 + 1), x / 2 }, -1)[{ {}, 1 }]
    h = -flow.one_hot(flow.cast(flow.mean(h, -1, true) ^ 2, "int32"), 4)
    local found = {}
    for class in flow.Model(x, h):summary_text():gmatch "%((%u%a+)%)" do found[#found + 1] = class end
    assert.same({ "InputLayer", "Multiply", "Add", "Relu", "TrueDivide", "Concatenate", "GetItem", "Mean", "Power", "Cast", "OneHot",
      "Negative" }, found)
    local inner = flow.Model(x, x + 1)
    local nested = flow.Sequential { inner }:summary_text { expand_nested = true }
    assert.truthy(nested:find("└ add[_%d]* %(Add%)"))
  end)

  it("counts what the optimizer keeps once there is a step", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(10), layers.BatchNormalization(), layers.Dense(1) }
    model:compile { optimizer = "adam", loss = "mse" }
    assert.falsy(model:summary_text():find("Optimizer", 1, true))
    model:train_on_batch(flow.ones { 2, 4 }, flow.ones { 2, 1 })
    local lines = lines_of(model:summary_text())
    assert.same({ " Total params: 265 (1.04 KB)", " Trainable params: 81 (324.00 B)", " Non-trainable params: 20 (80.00 B)",
                  " Optimizer params: 164 (660.00 B)" }, { unpack(lines, #lines - 3) })
    model.trainable = false
    assert.truthy(model:summary_text():find(" Trainable params: 0 (0.00 B)\n Non-trainable params: 101 (404.00 B)", 1, true))
  end)

  it("goes to the log, or line by line to a function, in the width asked for", function()
    local model, printed, lines = flowers(), {}, {}
    flow.log.sink = function(level, text) printed[#printed + 1] = level .. ":" .. text end
    model:summary()
    flow.log.sink = nil
    assert.same({ "print:" .. FLOWERS }, printed)
    model:summary { print_fn = function(line) lines[#lines + 1] = line end, line_length = 88 }
    assert.equal("│ rescaling (Rescaling)                │ (None, 180, 180, 3)         │               0 │", lines[5])
    assert.truthy(message_of(function() model:summary { line_lenght = 3 } end):find('did you mean "line_length"?', 1, true))
    assert.truthy(message_of(function() model:summary { line_length = 3 } end):find("a number from 40, got the number 3", 1, true))
  end)

  it("shows the layers of models inside, and which are trained", function()
    flow.clear_session()
    local inner = flow.Sequential({ layers.Input { 6 }, layers.Dense(4), layers.BatchNormalization() }, { name = "inner" })
    local middle = flow.Sequential({ layers.Input { 4 }, layers.Dense(6), inner }, { name = "mid" })
    inner.trainable = false
    local model = flow.Sequential({ layers.Input { 4 }, middle, layers.Dropout(0.1), layers.Dense(2) }, { name = "outer" })
    local options = { expand_nested = true, show_trainable = true }
    assert.same(lines_of(NESTED), lines_of(model:summary_text(options)))
    local input = flow.Input({ 4 }, { name = "in" })
    local branches = flow.Model { inputs = input, outputs = layers.Add()({ middle(input), layers.Dense(4)(input) }), name = "branchy" }
    assert.same(lines_of(NESTED_BRANCHES), lines_of(branches:summary_text(options)))
    local printed = {}
    branches:summary { print_fn = function(line) printed[#printed + 1] = line end, show_trainable = true }
    assert.truthy(printed[3]:find("Trai…", 1, true))
  end)

  it("shows the layers of a range, by name or pattern, in either order, and counts all", function()
    local model = flow.Sequential({ layers.Input { 4 }, layers.Dense(3, { name = "d1" }), layers.Dense(2, { name = "d2" }),
      layers.Dense(2, { name = "last-1" }) }, { name = "s" })
    local function shown(range)
      local names = {}
      local text = model:summary_text { layer_range = range }
      for name in text:gmatch("│ ([%w-]+) %(Dense%)") do names[#names + 1] = name end
      assert.truthy(text:find("Total params: 29", 1, true))
      return names
    end
    assert.same({ "d1", "d2" }, shown { "d1", "d2" })
    assert.same({ "d1", "d2" }, shown { "d2", "d1" })
    assert.same({ "d1", "d2", "last-1" }, shown { "d.", "last-1" })
    assert.truthy(message_of(function() shown { "d1", "x" } end):find('the model has no layer "x"', 1, true))
    assert.truthy(message_of(function() shown { "d1" } end):find("a list of two names of layers", 1, true))
  end)
end)

-- input_specs_spec.lua: a layer with an input_spec takes the inputs that it takes in Keras (input_specs.py), and says what does not fit.
local support = require "spec.support.init"
local flow = require "flow"

local layers, message_of = flow.layers, support.message_of
local folder = debug.getinfo(1, "S").source:match("^@(.*)input_specs_spec%.lua$")

local function has(text, part) assert.truthy(tostring(text):find(part, 1, true), tostring(text) .. "\nlacks: " .. part) end

local Given = layers.Layer:extend "Given"
function Given:call(x) return x end

describe("layer.input_spec", function()
  it("takes what Keras takes, on symbolic tensors and on values", function()
    local taken, cases = 0, dofile(folder .. "input_specs.lua")
    for i, case in ipairs(cases) do
      local specs, inputs, expected = unpack(case)
      local layer, list, symbols, is_known = Given(), {}, {}, true
      for k, spec in ipairs(specs) do list[k] = layers.InputSpec(spec) end
      layer.input_spec = #list == 1 and list[1] or list
      local values = {}
      for k, input in ipairs(inputs) do
        local shape, dtype = unpack(input)
        symbols[k] = flow.Input(shape, { dtype = dtype })
        is_known = is_known and #shape > 0      -- the batch is an axis of a size that is not known, too
        for _, size in ipairs(shape) do is_known = is_known and size >= 0 end
        values[k] = is_known and flow.zeros({ 2, unpack(shape) }, { dtype = dtype })
      end
      local function calls(given) return (pcall(layer, #given == 1 and given[1] or given)) end
      assert.equal(expected, calls(symbols), "case " .. i)
      if is_known then assert.equal(expected, calls(values), "case " .. i .. " with values") end
      taken = taken + (expected and 1 or 0)
    end
    assert.is_true(taken > 40 and taken < #cases - 40)
  end)

  it("says what was expected and what was found, before anything is built", function()
    local built = false
    local Cell = layers.Layer:extend "Cell"
    function Cell:init(size) self.input_spec = layers.InputSpec { ndim = 3, axes = { [-1] = size } } end
    function Cell:build() built = true end
    function Cell:call(x) return x end
    local cell = Cell(4)
    has(message_of(function() cell(flow.zeros { 2, 4 }) end), "input 1 does not fit its input_spec: expected ndim = 3, found ndim = 2")
    has(message_of(function() cell(flow.Input { 3, 5 }) end),
      "expected a size of 4 on axis -1, found 5; the shape of the input is {None, 3, 5}")
    has(message_of(function() cell({ flow.zeros { 2, 3, 4 }, flow.zeros { 2 } }) end), "its input_spec is of 1 inputs, it is called on 2")
    assert.is_false(built)
    assert.equal(0, cell(flow.zeros { 0, 3, 4 }).shape[1])
    assert.is_true(built)
    cell.input_spec = nil
    assert.equal(2, #cell(flow.zeros { 2, 5 }).shape)
  end)

  it("is of the first argument of a call on several, and takes inputs by name", function()
    local Pair = layers.Layer:extend "Pair"
    function Pair:call(x, context) return context and x + context or x end
    local pair = Pair()
    pair.input_spec = layers.InputSpec { shape = { -1, 3 } }
    assert.equal(3, pair(flow.ones { 2, 3 }, flow.ones { 3 }).shape[2])
    has(message_of(function() pair(flow.ones { 2, 4 }, flow.ones { 4 }) end), "expected shape {None, 3}, found shape {2, 4}")
    local Named = layers.Layer:extend "Named"
    function Named:call(x) return x.b end
    local named = Named()
    named.input_spec = { layers.InputSpec { name = "b", ndim = 2 }, layers.InputSpec { name = "a", ndim = 1 } }
    assert.equal(3, named({ a = flow.ones { 2 }, b = flow.ones { 2, 3 } }).shape[2])
    has(message_of(function() named({ a = flow.ones { 2, 2 }, b = flow.ones { 2, 3 } }) end), "input 2 does not fit")
    has(message_of(function() named({ b = flow.ones { 2, 3 }, c = flow.ones { 2 } }) end), 'names an input "a", which is not given')
  end)

  it("holds inside of models with sizes that are not known, in files and in training", function()
    local Checked = layers.Layer:extend "Checked"
    function Checked:init(size) self.input_spec = layers.InputSpec { ndim = 3, axes = { [2] = 5, [3] = size } } end
    function Checked:call(x) return x * 2 end
    local input = flow.Input { -1, 3 }
    local model = flow.Model { inputs = input, outputs = layers.GlobalAveragePooling1D()(layers.Dense(1)(Checked(3)(input))) }
    model:compile { optimizer = "sgd", loss = "mse" }
    model:fit(flow.ones { 1, 5, 3 }, flow.ones { 1, 1 }, { verbose = 0 })
    has(message_of(function() model:predict(flow.ones { 1, 4, 3 }, { verbose = 0 }) end), "expected a size of 5 on axis 2, found 4")
    local path = support.folder() .. "/checked.keras"
    model:save(path)
    local loaded = flow.load_model(path, { custom_objects = { Checked = Checked } })
    assert.equal(1, loaded:predict(flow.ones { 1, 5, 3 }, { verbose = 0 }).shape[1])
    has(message_of(function() loaded:predict(flow.ones { 1, 4, 3 }, { verbose = 0 }) end), "expected a size of 5 on axis 2, found 4")
    local spec = loaded.input_spec[1]
    assert.same({ -1, -1, 3 }, spec.shape)
    assert.is_true(spec.allow_last_axis_squeeze)
  end)

  it("of built-in layers is what Keras' say", function()
    local dense = layers.Dense(2)
    assert.equal(2, dense.input_spec.min_ndim)
    dense:build { -1, 7 }
    assert.equal(7, dense.input_spec.axes[-1])
    assert.equal(5, layers.ConvLSTM2D(2, 3).input_spec.ndim)
    assert.equal(4, layers.Conv2D(2, 3).input_spec.min_ndim)
    assert.equal(3, layers.Permute({ 2, 1 }).input_spec.ndim)
    assert.is_nil(layers.Dropout(0.5).input_spec)
  end)

  it("refuses what is not a spec", function()
    has(message_of(function() Given().input_spec = 3 end), "input_spec is a flow.layers.InputSpec or a list of them, got the number 3")
    has(message_of(function() Given().input_spec = { layers.InputSpec(), 3 } end), "entry 2 of input_spec is the number 3")
    has(message_of(function() layers.InputSpec({ ndim = 2, axes = { [3] = 1 } }) end), "axes names axis 3 of inputs with 2 axes at most")
    has(message_of(function() layers.InputSpec({ axes = { [0] = 1 } }) end), "axes has sizes by axes, from 1 or from -1")
    has(message_of(function() layers.InputSpec({ shape = { 2, "a" } }) end), "shape: entry 2 is")
    has(message_of(function() layers.InputSpec({ dtype = "floot" }) end), "floot")
    local spec = layers.InputSpec { shape = { -1, 3 }, dtype = "int32" }
    assert.same({ -1, 3 }, layers.InputSpec.from_config(spec:get_config()).shape)
    assert.equal("int32", flow.keras.InputSpec.from_config(spec:get_config()).dtype)
  end)
end)

-- renormalization_spec.lua: BatchNormalization with renorm: its options, configs, files and variables. What it computes is compared with
-- Keras in golden/layer_cases/renormalization.py.
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"

local layers, message_of = flow.layers, support.message_of
local Norm = layers.BatchNormalization

local function has(message, text)
  assert.truthy(message:find(text, 1, true), message)
end

local function clipping_of(options)
  return json.encode(Norm(options):get_config().renorm_clipping)
end

describe("renorm", function()
  it("takes some of its limits, which configs keep", function()
    assert.equal('{"dmax":5,"rmax":3}', clipping_of { renorm = true, renorm_clipping = { rmax = 3, dmax = 5 } })
    assert.equal("{}", clipping_of { renorm = true })
    assert.equal("{}", clipping_of { renorm = true, renorm_clipping = {} })
    assert.equal(json.null, Norm():get_config().renorm_clipping)
    for _, options in ipairs { { renorm = true, renorm_clipping = { rmin = 0.5 }, renorm_momentum = 0.8 }, { renorm = true }, {} } do
      local layer = Norm(options)
      assert.same(layer:get_config(), Norm.from_config(layer:get_config()):get_config())
    end
  end)

  it("refuses other names, what is no number, and limits that leave nothing", function()
    for text, clipping in pairs {
      ['renorm_clipping has no number "rmx"; the names are rmin, rmax, dmax'] = { rmx = 2 },
      ['renorm_clipping.rmax must be a number, found "a"'] = { rmax = "a" },
      ["renorm_clipping must be a table of numbers with names, found 3"] = 3,
      ["renorm_clipping must be a table of numbers with names, found {3}"] = { 3 },
      ["renorm_clipping has rmin 2 and rmax 1: rmax must not be the smaller one"] = { rmax = 1, rmin = 2 },
      ["renorm_clipping has dmax -1: it must not be negative"] = { dmax = -1 },
    } do
      has(message_of(function() Norm { renorm = true, renorm_clipping = clipping } end), text)
    end
    has(message_of(function() Norm { renorm_momentum = 2 } end), "renorm_momentum must be between 0 and 1, found 2")
    has(message_of(function() layers.Dense { 3, kernel_size = { a = 1 } } end), 'unknown option "kernel_size.a"')
    has(message_of(function() layers.Conv2D { 3, kernel_size = { a = 1 } } end),
      'kernel_size must be an integer or a list of two integers, found a table with the name "a"')
  end)

  it("has its limits as a field, which another table replaces as a whole", function()
    local layer = Norm { renorm = true, renorm_clipping = { rmax = 3, dmax = 5 } }
    layer.renorm_clipping = { rmax = 1.5 }
    assert.same({ rmax = 1.5 }, layer.renorm_clipping)
    assert.is_true(layer.renorm)
    layer.renorm_momentum = 0.5
    assert.equal(0.5, layer.renorm_momentum)
  end)

  it("begins its deviations with the root of the first variance, and has them as fields", function()
    local layer = Norm { renorm = true, moving_variance_initializer = flow.initializers.Constant(4) }
    layer:build { 5, 3 }
    local names = {}
    for i, v in ipairs(layer.weights) do names[i] = v.name end
    assert.same({ "gamma", "beta", "moving_mean", "moving_variance", "moving_stddev", "renorm_mean", "renorm_stddev" }, names)
    assert.same({ 2, 2, 2 }, layer.moving_stddev:value():totable())
    assert.same({ 2, 2, 2 }, layer.renorm_stddev:value():totable())
    assert.same({ 0, 0, 0 }, layer.renorm_mean:value():totable())
  end)

  it("counts what a mask keeps", function()
    local x = flow.random.normal({ 4, 6, 3 }, { seed = 1 }) * 2 + 1
    local plain, masked = Norm { renorm = true }, Norm { renorm = true }
    local kept = (flow.zeros { 4, 6 } + flow.arange(6)):lt(3)
    local y = masked(x, { training = true, mask = kept })[{ {}, { 1, 3 } }]
    local expected = plain(x[{ {}, { 1, 3 } }], { training = true })
    assert.is_true((y - expected):abs():max():item() < 1e-5)
    for i, v in ipairs(plain.weights) do
      assert.is_true((v:value() - masked.weights[i]:value()):abs():max():item() < 1e-6, v.name)
    end
  end)

  it("trains from a file as it would have gone on", function()
    local x = flow.random.normal({ 48, 4 }, { seed = 1 }) * 3 + 1
    local function train(model) return model:fit(x, x, { epochs = 1, batch_size = 16, shuffle = false, verbose = 0 }).history.loss[1] end
    local norm = Norm { renorm = true, renorm_clipping = { rmax = 3, rmin = 0.5 } }
    local model = flow.Sequential { layers.Input { 4 }, norm, layers.Dense(4) }
    model:compile { optimizer = "adam", loss = "mse" }
    train(model)
    local path = support.path "renorm.keras"
    model:save(path)
    local read = flow.load_model(path)
    assert.same({ rmax = 3, rmin = 0.5 }, read.layers[1].renorm_clipping)
    assert.equal(train(model), train(read))
  end)
end)

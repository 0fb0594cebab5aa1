-- feature_space_spec.lua: a FeatureSpace in a file has all that it has learned: one that Keras has written (feature_space.py), and ours.
local support = require "spec.support.init"
local flow = require "flow"

local message_of = support.message_of
local Space, Dataset = flow.utils.FeatureSpace, flow.data.Dataset
local folder = debug.getinfo(1, "S").source:match("^@(.*)feature_space_spec%.lua$")
local expected = flow.tensor(dofile(folder .. "feature_space.lua"))

local function has(text, part) assert.truthy(tostring(text):find(part, 1, true), tostring(text) .. "\nlacks: " .. part) end

local ROWS = { town = { "bern", "rome", "oslo", "rome" }, job = { "cook", "smith", "cook", "clerk" }, wage = { 1, 2, 3, 10 },
               age = { 21, 35, 48, 62 }, rooms = { 3, 4, 3, 9 }, height = { 1.5, 1.75, 1.625, 1.875 }, plain = { 4, 3, 2, 1 },
               street = { "a", "b", "c", "d" }, bin = { 0.5, 1.5, 2.5, 3.5 } }

local function distance(a, b) return (a - b):abs():max():item() end

local function made()
  return Space { crosses = { { "town", "job" }, Space.cross({ "street", "rooms" }, 4) }, crossing_dim = 6, features = {
    town = "string_categorical", job = Space.string_categorical { max_tokens = 3 }, wage = "float_normalized", age = "float_normalized",
    rooms = "integer_categorical", height = Space.float_rescaled(2, -1), plain = "float", street = Space.string_hashed(5),
    bin = Space.float_discretized(3) } }
end

describe("a FeatureSpace", function()
  it("that Keras has saved is read with vocabularies, means, bins and crosses", function()
    local space = flow.load_model(folder .. "feature_space.keras")
    assert.is_true(distance(space(ROWS), expected) < 1e-4)
    local one = {}
    for name, values in pairs(ROWS) do one[name] = values[2] end
    assert.is_true(distance(space(one), expected[2]) < 1e-4)
    local rows = 0
    for x in Dataset.from_tensor_slices(ROWS):map(function(row) return space(row) end):batch(3):iter() do rows = rows + x.shape[1] end
    assert.equal(4, rows)
  end)

  it("is written and read back, also of other features, and again", function()
    local space, path = made(), support.folder() .. "/space.keras"
    space:adapt(Dataset.from_tensor_slices(ROWS):batch(2))
    assert.is_true(distance(space(ROWS), expected) < 1e-4)
    space:save(path)
    for _ = 1, 2 do
      local loaded = flow.load_model(path)
      assert.equal(0, distance(loaded(ROWS), space(ROWS)))
      loaded:save(path)
    end
    local loaded = flow.load_model(path)
    local model = flow.Model { inputs = loaded:get_inputs(), outputs = loaded:get_encoded_features() }
    assert.is_true(distance(model:predict(ROWS, { verbose = 0 }), expected) < 1e-4)
  end)

  it("is written by a script that had it from a file only", function()
    local script, path = support.file("again.lua", [[
      local flow = require "flow"
      flow.load_model(arg[1]):save(arg[2])
      print(flow.load_model(arg[2]))
    ]]), support.folder() .. "/space.keras"
    local said = support.run(("%s %s %sfeature_space.keras %s 2>&1"):format(support.program, script, folder, path))
    assert.truthy(said:find "^FeatureSpace", said)
  end)

  it("gives tables by name after a file, too, and keeps given vocabularies and statistics", function()
    local space = Space { output_mode = "dict", hashing_dim = 7, features = {
      job = Space.feature("string", flow.layers.StringLookup { vocabulary = { "cook", "smith" } }, "int"),
      age = Space.feature("float32", flow.layers.Normalization { mean = 30, variance = 4 }, "float"), street = "string_hashed" } }
    local path = support.folder() .. "/space.keras"
    space:save(path)
    local loaded, rows = flow.load_model(path), { job = ROWS.job, age = ROWS.age, street = ROWS.street }
    local a, b = space(rows), loaded(rows)
    for name in pairs(rows) do assert.equal(0, distance(a[name]:to "float32", b[name]:to "float32"), name) end
    assert.same({ 1, 2, 1, 0 }, b.job:reshape({ -1 }):totable())
  end)

  it("holds layers of scripts, which come back by custom_objects, and no functions", function()
    local Half = flow.layers.Layer:extend "HalfOfIt"
    function Half:call(x) return x / 2 end
    local path = support.folder() .. "/space.keras"
    Space({ features = { x = Space.feature("float32", Half(), "float") } }):save(path)
    local loaded = flow.load_model(path, { custom_objects = { HalfOfIt = Half } })
    assert.same({ { 1 }, { 2 } }, loaded({ x = { 2, 4 } }):totable())
    has(message_of(function() flow.load_model(path) end), "HalfOfIt")
    has(message_of(function() Space({ features = { x = Space.feature("float32", function(x) return x end, "float") } }):save(path) end),
      'feature "x" is prepared by a function, which files do not hold: use a layer')
  end)

  it("gives one text of several words one row without a batch, as Keras does", function()
    for mode, size in pairs { dict = 4, concat = 5 } do
      local words = flow.layers.TextVectorization { output_mode = "tf_idf" }
      local space = Space { features = { text = Space.feature { preprocessor = words, dtype = "string", output_mode = "float" },
        n = Space.float_normalized() }, output_mode = mode }
      local data = flow.data.Dataset.from_tensor_slices { { text = { "a b", "b c", "a" }, n = { 1, 2, 3 } } }
      space:adapt(data)
      local row = space(data:iter()())
      assert.same({ size }, { unpack((mode == "dict" and row.text or row).shape) })
    end
  end)

  it("is saved once it has learned, in a .keras file", function()
    has(message_of(function() made():save(support.folder() .. "/space.keras") end), "call adapt(data) before it is used")
    has(message_of(function() made():save "space.txt" end), 'save: "space.txt": the path must end in .keras')
  end)
end)

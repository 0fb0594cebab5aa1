-- prepared_parts_spec.lua: models inside of a graph that prepare data, such as a Sequential that looks words up and embeds them, are its
-- layers, as in Keras' file: prepared_parts.py.
local flow = require "flow"
local support = require "spec.support.init"

local FOLDER = support.root .. "spec/golden/"
local given = { flow.tensor { "ann", "bob", "eve" }, flow.tensor { "bob", "bob", "ann" }, flow.tensor { "up", "brazil", "jaws" },
  flow.tensor { { 0.5 }, { 1.5 }, { -1 } } }
local expected = flow.load_npz(FOLDER .. "prepared_parts.npz").predicted

local function check(model)
  assert.near(0, (model:predict(given, { verbose = 0 }) - expected):abs():max():item(), 1e-6)
  assert.near(0, (model(given) - expected):abs():max():item(), 1e-6)
  local names = {}
  for i, layer in ipairs(model.layers) do names[i] = layer.name end
  assert.same({ "user", "other", "user_encoder", "film", "age", "people", "film_and_age", "all", "score" }, names)
end

describe("a model that holds models which prepare data", function()
  it("is read from Keras' file, written, and read again", function()
    local model = flow.load_model(FOLDER .. "prepared_parts.keras")
    check(model)
    local path = support.path "parts.keras"
    model:save(path)
    check(flow.load_model(path))
    local copy = flow.models.clone_model(model)
    copy:set_weights(model:get_weights())
    check(copy)
  end)

  it("trains on arrays as on a Dataset, and stays what it computes", function()
    local losses = {}
    local data = flow.data.Dataset.from_tensor_slices { { unpack(given) }, flow.zeros { 3, 2 } }:batch(2)
    for i = 1, 2 do
      local model = flow.load_model(FOLDER .. "prepared_parts.keras")
      model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
      local history = i == 1 and model:fit(given, flow.zeros { 3, 2 }, { batch_size = 2, epochs = 3, shuffle = false, verbose = 0 })
        or model:fit(data, { epochs = 3, verbose = 0 })
      losses[i] = history.history.loss
      assert.near(0, (model:predict(given, { verbose = 0 }) - model(given)):abs():max():item(), 1e-6)
    end
    assert.is_true(losses[1][3] < losses[1][1])
    for i = 1, 3 do assert.near(losses[2][i], losses[1][i], 1e-6) end
  end)
end)

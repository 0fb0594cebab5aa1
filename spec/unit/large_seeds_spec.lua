-- Seeds that a double does not tell from their neighbours: an error wherever a seed is given, in files, too.
local flow = require "flow"
local support = require "spec.support.init"

local layers = flow.layers

local MAKERS = {
  draw = function(seed) flow.random.normal({ 1 }, { seed = seed }) end,
  ["program's seed"] = function(seed) flow.set_random_seed(seed) end,
  generator = function(seed) flow.random.SeedGenerator(seed) end,
  layer = function(seed) layers.Dropout(0.5, { seed = seed }) end,
  initializer = function(seed) flow.initializers.RandomNormal { seed = seed } { 2 } end,
  ["layer's initializer"] = function(seed) layers.Dense(1, { kernel_initializer = flow.initializers.RandomNormal { seed = seed } }) end,
  shuffle = function(seed) flow.data.Dataset.range(3):shuffle(3, { seed = seed }) end,
}

describe("a seed", function()
  for what, make in pairs(MAKERS) do
    it("above 2^53, a fraction, infinity and NaN are refused by a " .. what, function()
      for _, seed in ipairs { 2 ^ 53 + 2, 2 ^ 64, 1e300, 1.5, math.huge, 0 / 0 } do
        local message = support.message_of(function() make(seed) end)
        assert.is_truthy(message:find("seed", 1, true), message)
      end
      make(2 ^ 53 - 1)
    end)
  end

  it("of a file keeps its bits, or is refused", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dropout(0.5, { seed = 9007199254740991 }),
                                    layers.Dense(1, { kernel_initializer = flow.initializers.RandomNormal { seed = 9007199254740991 } }) }
    local text = model:to_json()
    assert.equals(text, flow.models.model_from_json(text):to_json())
    for _, seed in ipairs { "9007199254740992", "9007199254740993", "18446744073709551615" } do
      local changed = text:gsub("9007199254740991", seed)
      local message = support.message_of(function() flow.models.model_from_json(changed) end)
      assert.is_truthy(message:find("seed must be an integer of a magnitude below 2^53, found", 1, true), message)
    end
  end)
end)

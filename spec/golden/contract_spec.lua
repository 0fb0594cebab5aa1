--- The contract of numbers for every layer of the golden cases: a prediction has the bits of its rows, whatever the capacity of the
--- instance and whatever ran before, and under set_precision("exact") a row has those bits alone, too. FLOW_CASES=10000 tries this many.
local flow = require "flow"
local backend = require "spec.support.backend"
local golden = require "spec.support.golden"

local cases = golden.manifest.layers
local FIRST, LAST = (require "spec.support.case_numbers")(#cases)
local MOST_ROWS = 70
local OVER_THE_BATCH = { MelSpectrogram = true }      -- as in Keras its floor is top_db below the loudest of all rows

--- Batches of `rows` rows for a case, with the values of its inputs' formula.
local function batch(case, rows)
  local list = {}
  for i, entry in ipairs(case.inputs) do
    local shape = { rows, unpack(entry.shape, 2) }
    list[i] = golden.make { shape = shape, seed = entry.seed, low = entry.low, high = entry.high, classes = entry.classes }
  end
  return list
end

local function rows_of(inputs, first, last)
  local list = {}
  for i, t in ipairs(inputs) do list[i] = t[{ { first, last } }]:copy() end
  return #list > 1 and list or list[1]
end

describe("the bits of a layer's prediction", function()
  for _, precision in ipairs { "fast", "exact" } do
    it("follow from its rows, in " .. precision .. " mode", function()
      flow.config.set_precision(precision)
      finally(function() flow.config.set_precision("fast") end)
      for number = FIRST, LAST do
        local case = cases[(number - 1) % #cases + 1]
        local capacity = 1 + number * 31 % MOST_ROWS
        local rows = 1 + number * 17 % capacity
        local row = 1 + number * 7 % rows
        local whole, roomy, fitting = batch(case, capacity), golden.layer_model(case), golden.layer_model(case)
        roomy:predict_on_batch(rows_of(whole, 1, capacity))
        local predicted = roomy:predict_on_batch(rows_of(whole, 1, rows))
        local label = ("%s, %d rows with room for %d (number %d)"):format(case.name, rows, capacity, number)
        backend.identical(fitting:predict_on_batch(rows_of(whole, 1, rows)), predicted, label)
        if precision == "exact" and not OVER_THE_BATCH[case.layer] then
          local alone = golden.layer_model(case):predict_on_batch(rows_of(whole, row, row))
          backend.identical(alone, predicted[{ { row, row } }], label .. ", row " .. row)
        end
        if number % 20 == 0 then collectgarbage() end
      end
    end)
  end
end)

--- Whole nets against Keras: the loss of every step, then predictions and statistics, for the same weights and batches.
local flow = require "flow"
local golden = require "spec.support.golden"
local nets = require "spec.support.nets.golden"
local precisions = require "spec.support.precision"

--- Rows first .. first + count - 1 (from 0) of a tensor.
local function rows(tensor, first, count) return tensor[{ { first + 1, first + count } }] end

--- Cases where rounding decides on which side of zero the input of a relu is, and the steps before that matters. In the third step of
--- "mnist, SGD" float64 has one at -4e-9, nearer to zero than float32 rounds: a pixel more or less in one gradient. Some steps later that
--- turns units of the hidden layer, which a whole image goes through. relu_signs.py shows it: float64 with this one sign turned is up to
--- 1.3e-3 away from float64 as it is, and within 2e-7 of the emulated GPU for 19 steps. In "flowers 60, Adam" float64 has pixels that lead
--- their pooling window by 1e-7, less than float32 tells apart; of two courses, whose losses are 1.1e-4 apart after ten steps, AVX2 takes
--- one in fast mode and the other in exact mode, plain C the reverse, and both give the same digits on either.
local turns = {
  ["mnist, SGD"] = { exact_steps = 10, later = 3e-3, prediction = 5e-2 },
  ["flowers 60, Adam"] = { exact_steps = 8, later = 2e-4, prediction = 1e-3 },
}

--- The first differences, for a message that shows how a divergence grows.
local function compare_losses(case, losses)
  local turn, lines, bad = turns[case.name], {}, false
  for step, loss in ipairs(losses) do
    local difference = math.abs(loss - case.losses[step])
    local bound = not turn and 1e-4 or step <= turn.exact_steps and 1e-5 or turn.later
    if not (difference <= bound) then bad = true end
    lines[step] = string.format("step %2d: %.7f, Keras %.7f, off by %.1e", step, loss, case.losses[step], difference)
  end
  assert.are.equal(#case.losses, #losses)
  if bad then error(case.name .. ": losses differ\n" .. table.concat(lines, "\n")) end
end

describe("training as in Keras:", function()
  for _, precision in ipairs(precisions.all) do for _, case in ipairs(golden.manifest.training) do
    it(case.name .. ", " .. precision, function()
      flow.config.set_precision(precision)
      finally(function() flow.config.set_precision(precisions.default) end)
      local model = nets[case.net](case.size)
      model:set_weights(golden.make_all(case.weights))
      model:compile {
        optimizer = flow.optimizers[case.optimizer](case.options),
        loss = flow.losses.SparseCategoricalCrossentropy { from_logits = case.from_logits },
      }
      local x, y = golden.make(case.x), golden.make(case.y)
      local losses = {}
      for step = 1, case.steps do
        local first = (step - 1) * case.batch % y.shape[1]
        losses[step] = model:train_on_batch(rows(x, first, case.batch), rows(y, first, case.batch)).loss
      end
      compare_losses(case, losses)

      local bound = turns[case.name] and turns[case.name].prediction or 2e-4
      golden.check("training", case.results[1], model:predict_on_batch(rows(x, 0, case.batch)), bound)
      local states = model.non_trainable_variables
      for i, variable in ipairs(states) do
        golden.check("training", case.results[1 + i], variable:value(), 1e-5)
      end
    end)
  end end
end)

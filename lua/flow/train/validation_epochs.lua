-- validation_epochs.lua: fit's option validation_freq: every N epochs, or a list of epochs counted from 1.

local errors = require "flow.errors"

local validation_epochs = {}

-- Returns the value, a number from 1 or a list; raises for a list with anything but whole numbers from 1.
function validation_epochs.check(value)
  for _, epoch in ipairs(type(value) == "table" and value or {}) do
    if type(epoch) ~= "number" or epoch < 1 or epoch ~= math.floor(epoch) then
      errors.raise("fit: an entry of validation_freq is a whole number from 1, got %s", errors.describe(epoch))
    end
  end
  return value
end

-- Whether an epoch, counted from 0, ends with a validation.
function validation_epochs.has(frequency, epoch)
  if type(frequency) == "number" then return (epoch + 1) % frequency == 0 end
  for _, wanted in ipairs(frequency) do
    if wanted == epoch + 1 then return true end
  end
  return false
end

return validation_epochs

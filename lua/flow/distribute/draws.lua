-- draws.lua: the random numbers of the functions that a strategy runs. Each function has a seed and a count of its runs. A function is
-- identified by its place in the program, so that it continues its numbers when it is traced again, or when a worker was started again.

local draws = {}

-- An object that a strategy keeps.
function draws.new()
  return { keys = setmetatable({}, { __mode = "k" }), counts = {}, known = {} }
end

-- own, traced in f's place, takes the seed and the count of the one before.
function draws.resume(self, f, own)
  local key = self.keys[f]
  if not key then
    local number = (self.counts[own.where] or 0) + 1
    key = ("%s %d"):format(own.where, number)
    self.keys[f], self.counts[own.where] = key, number
  end
  local before = self.known[key]
  if before then own.seed, own.runs = before.seed, before.runs end
  self.known[key] = own
  return own
end

-- All of them as they are now, and back to that.
function draws.save(self)
  local list = {}
  for key, entry in pairs(self.known) do list[key] = { seed = entry.seed, runs = entry.runs } end
  return list
end

function draws.restore(self, list)
  self.known = {}
  for key, entry in pairs(list) do self.known[key] = { seed = entry.seed, runs = entry.runs } end
end

return draws

-- data_draws.lua: the positions of the random generators of all data sets that the stretches of a program (recovery.lua) have read. A
-- worker that was started again, and therefore skipped stretches, takes them over and reads data in the same order as the others.

local Iterator = require "flow.data.iterator"

local data_draws = {}

-- An object that a recovery keeps: data sets that draw, in the order of their first use, and how they do while a stretch that has begun may
-- have to begin again.
function data_draws.new()
  return { list = {}, held = {} }
end

local function is_random(position)
  return position:match("^%S+ %x+ %d+ (%d+)") ~= "0"      -- after format, pipeline and position (core/data/iterator.c)
end

-- A stretch begins that reads these data sets; those that are known already, too.
function data_draws.note(self, datasets)
  self.held = {}
  for _, dataset in ipairs(datasets) do
    local position, known = Iterator._look(dataset), false
    for _, other in ipairs(self.list) do known = known or other == dataset end
    if is_random(position) then
      if not known then self.list[#self.list + 1] = dataset end
      self.held[dataset] = position
    end
  end
end

-- It has ended, or knows by itself how it goes on.
function data_draws.let_go(self) self.held = {} end

function data_draws.save(self)
  local positions = {}
  for i, dataset in ipairs(self.list) do positions[i] = self.held[dataset] or Iterator._look(dataset) end
  return positions
end

function data_draws.restore(self, positions)
  for i, dataset in ipairs(self.list) do
    if positions[i] then Iterator._align(dataset, positions[i]) end
    if self.held[dataset] then self.held[dataset] = positions[i] or self.held[dataset] end
  end
end

return data_draws

-- placement.lua: where steps run: on how many replicas of this process, and beside which other processes.
--
--   local p = placement.new { replicas = 2, worker = handle or nil }
--   p.replicas, p.workers, p.worker_index, p.count (all replicas of all workers)
--   placement.enter(p) ... placement.leave()        a stack of this Lua state; placement.current() is the innermost one, or nil

local native = require "flow.ffi"

local C = native.C
local placement = {}
local stack = {}

function placement.new(options)
  local worker = options.worker
  local workers = worker and C.flow_worker_count(worker) or 1
  return { replicas = options.replicas, workers = workers, worker_index = worker and C.flow_worker_rank(worker) or 0,
           count = options.replicas * workers, worker = worker }
end

function placement.current() return stack[#stack] end
function placement.enter(p) stack[#stack + 1] = p end
function placement.leave() stack[#stack] = nil end

local function pack(...)
  return { n = select("#", ...), ... }
end

-- Runs a flow.fn on every local replica with its list of arguments; returns for each the list of what it returned.
function placement.run(p, f, arguments)
  local results = {}
  for i = 1, p.replicas do results[i] = pack(f(unpack(arguments[i], 1, arguments[i].n))) end
  return results
end

return placement

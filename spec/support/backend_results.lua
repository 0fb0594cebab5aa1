--- A program: luajit spec/support/backend_results.lua FILE writes the results and gradients of all cases of the back end,
-- one after the other, as a float64 .npy file, computed with the instruction set that FLOW_ISA names. isa_spec.lua
-- compares the files of several.
local root = debug.getinfo(1, "S").source:match("^@(.*)spec/support/backend_results%.lua$")
package.path = root .. "lua/?.lua;" .. root .. "lua/?/init.lua;" .. root .. "?.lua;" .. package.path

local flow = require "flow"
local backend = require "spec.support.backend"
local cases = require "spec.backend.cases"

flow.config.set_precision("exact")      -- builds choose fast algorithms by their own costs

local parts = {}
local function keep(t)
  parts[#parts + 1] = t:to("float64"):reshape(-1)
end

--- After the outputs of a case and after its gradients.
local function mark() keep(flow.tensor { -12345 }) end

for _, case in ipairs(cases) do
  local sizes = { backend.ROWS, backend.batched(case) and 67 or nil }
  for _, rows in ipairs(sizes) do
    for _, output in ipairs(backend.run(case, backend.inputs(case, rows, "float32"), rows, "float32")) do keep(output) end
  end
  mark()
  for _, rows in ipairs(backend.differentiable(case) and sizes or {}) do
    local gradients = backend.gradients(case, backend.inputs(case, rows, "float32"), rows, "float32")
    for i = 1, #case.inputs do
      if gradients[i] then keep(gradients[i]) end
    end
  end
  mark()
end

io.stdout:write(flow.isa())
flow.save_npy(arg[1], flow.concat(parts))

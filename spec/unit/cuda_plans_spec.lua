-- Convolutions of the reference models for GPUs that this machine does not have: every formula has a plan of the real cuDNN, with the
-- workspace that spec/cuda/plans.txt holds. The table is of one version of cuDNN; with another one there must be plans, of whatever size.
local support = require "spec.support.init"

local build = support.program:gsub("/bin/[^/]*$", "")
local lines = {}
for line in io.lines(support.root .. "spec/cuda/plans.txt") do lines[#lines + 1] = line end

local function formulas_of(table_lines)
  local formulas = {}
  for _, line in ipairs(table_lines) do
    if line:sub(1, 1) ~= "#" then formulas[#formulas + 1] = line:match("[^\t]*$") end
  end
  return formulas
end

describe("plans for GPUs", function()
  it("are asked for by the formulas of the table", function()
    local path = support.file("formulas", "")
    local output, code = support.run(("FLOW_EMULATED_FORMULAS=%s %s/bin/cuda_formulas"):format(path, build))
    assert.are.equal("", output)
    assert.are.equal(0, code)
    local asked = {}
    for line in io.lines(path) do asked[#asked + 1] = line end
    assert.is_true(#asked > 300)
    assert.are.same(formulas_of(lines), asked)
  end)

  it("exist for every formula, as the table says", function()
    local output, code = support.run(("FLOW_BUILD=%s %sscripts/cuda-plans"):format(build, support.root))
    if code == 3 then return pending((output:gsub("^cuda%-plans: ", ""):gsub("\n$", ""))) end
    assert.are.equal(0, code, output)
    local found, kinds = {}, {}
    for line in output:gmatch("[^\n]+") do found[#found + 1] = line end
    assert.are.equal(#lines, #found)
    for i = 3, #found do
      local kind = found[i]:match("\t(%l+ ?%l*) [^\t]*$")
      kinds[kind] = true
      assert.is_nil(found[i]:find("none"), found[i])
    end
    assert.is_true(kinds["convolution forward"] and kinds["convolution data"] and kinds["convolution filter"])
    if found[1] == lines[1] then assert.are.same(lines, found) end
  end)
end)

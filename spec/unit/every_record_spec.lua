-- every_record_spec.lua: each layer, loss, metric, optimizer, schedule and callback is named by a spec. A record whose tests were forgotten
-- is listed here; the lists of Keras' names and parameters do not count as tests.
local support = require "spec.support.init"
local flow = require "flow"

-- Classes that scripts extend, and what stands for a separate family.
local ABSTRACT = { ["flow.metrics.Metric"] = true, ["flow.optimizers.Optimizer"] = true }

-- Adds the words by which code can name a record: those after a dot, keys of tables, and words of texts; not those of comments, nor the
-- name of a class that a spec makes.
local function add_names(words, code)
  code = ("\n" .. code):gsub("([\n ])%-%-[^\n]*", "%1"):gsub("extend%s*%(?%s*\"[%w_]+\"", ""):gsub("local [%w_]+", "")
  for _, named in ipairs { "%.([%w_]+)", "([%w_]+) =" } do
    for word in code:gmatch(named) do words[word] = true end
  end
  for _, quoted in ipairs { '"([^"\n]*)"', "'([^'\n]*)'", "%[%[(.-)%]%]" } do
    for text in code:gmatch(quoted) do
      for word in text:gmatch("[%w_]+") do words[word] = true end
    end
  end
end

describe("a record", function()
  it("is named by a spec", function()
    local words = {}
    local find = "find %sspec -name '*.lua' ! -path '*/golden/names.lua' ! -path '*/golden/parameters*.lua' ! -name every_record_spec.lua"
    for file in support.run(find:format(support.root)):gmatch("[^\n]+") do
      local input = assert(io.open(file))
      add_names(words, input:read("*a"))
      input:close()
    end
    local _, without, count = flow.help, {}, 0      -- the walk begins at flow
    for _, item in ipairs(require("flow.reference").all()) do
      local module, name = item.name:match("^flow%.([%w_.]+)%.(%u%w+)$")
      if module == "layers" or module == "losses" or module == "metrics" or module == "callbacks" or (module or ""):find("^optimizers") then
        count = count + 1
        if not words[name] and not ABSTRACT[item.name] then without[#without + 1] = item.name end
      end
    end
    assert.is_true(count > 250, count)
    assert.equal("", table.concat(without, " "))
  end)
end)

-- odd_hosts_spec.lua: whatever a host has done to its process and to its Lua state, the same program gives the same bits, prints nothing
-- and ends. Conditions are drawn; FLOW_CASES=300 tries more of them, FLOW_CASE=17 one.
local support = require "spec.support.init"
local case_numbers = require "spec.support.case_numbers"
local comma_locale = require "spec.support.comma_locale"
local draw = require "spec.support.draw"

local host = support.program:match("^(.*/)") .. "odd_host"
local PROGRAMS = { "train", "save", "data", "replicas" }
local PROCESS = { "pipes ignored", "children reaped", "children ignored", "interrupted", "signals blocked", "flush to zero",
                  "decimal commas", "few files", "another folder", "no folder", "several states", "another state before", "a thread",
                  "a fork" }
local STATE = { "no compiler", "compiled at once", "strict globals", "errors in callbacks", "left iterators", "collector stopped",
                "collector hurries", "a hook", "constant random", "clock goes back", "no print", "fewer libraries", "inside a callback",
                "a coroutine" }
local SHELL = { "exec <&-", "exec >&-", "exec 2>&-", "exec <&- >&- 2>&-", "exec >/dev/full 2>&1", "ulimit -s 512", "ulimit -l 0",
                "umask 077", "trap '' HUP INT TERM USR1", "export TMPDIR=/nonexistent", "export MALLOC_PERTURB_=165",
                "export MALLOC_ARENA_MAX=1", "export FLOW_THREADS=1", "export FLOW_THREADS=5", "export HOME=" }

-- What the program gives under these conditions, after these lines of the shell; and what it has printed, with its status if it is not 0.
local function run(program, conditions, lines)
  local folder = support.folder()
  local words = { host, folder .. "/out", support.root .. "spec/host/odd_host.lua", program, folder }
  for _, condition in ipairs(conditions) do words[#words + 1] = "'" .. condition .. "'" end
  local script = ("export LOCPATH=%s; %s\nexec timeout 120 %s"):format(comma_locale.folder(), table.concat(lines, "\n"),
    table.concat(words, " "))
  local said, code = support.run(("bash %s 2>&1"):format(support.file("run.sh", script)))
  return support.exists(folder .. "/out") and support.read(folder .. "/out"), said .. (code == 0 and "" or "ended with " .. code)
end

describe("a program in a host with", function()
  if os.getenv "FLOW_SANITIZED" then return it("sanitizers", function() pending "a sanitizer has signals and files of its own" end) end
  local plain = {}

  -- Some of the list, each once.
  local function some(state, list, most, into)
    for _ = 1, draw(state, 0, most) do
      local found = list[draw(state, 1, #list)]
      into[found] = into[found] or table.insert(into, found) or true
    end
    return into
  end

  local first, last = case_numbers(10)
  for case = first, last do
    local state = { number = case * 7919 }
    for _ = 1, 5 do draw(state, 1, 2) end
    local program = PROGRAMS[case % #PROGRAMS + 1]
    local conditions = some(state, STATE, 3, some(state, PROCESS, 3, {}))
    local lines = some(state, SHELL, 2, {})
    it(("%s (case %d: %s)"):format(table.concat(conditions, ", "), case, table.concat(lines, "; ")), function()
      plain[program] = plain[program] or run(program, {}, {})
      assert.truthy(plain[program]:find "^[%x%-,.p+x ]+\n$", plain[program])
      local text, said = run(program, conditions, lines)
      assert.equal("", said)
      assert.equal(plain[program], text)
    end)
  end
end)

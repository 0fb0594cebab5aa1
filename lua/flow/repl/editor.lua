-- editor.lua: lines from the terminal with history and completion, by libedit if it is installed, else plain. loop.lua calls open() once,
-- read() and remember() for each entry, and close() at the end. libedit's state belongs to the process, so there is one editor at a time.

local native = require "flow.ffi"

local editor = {}

local process = native.other_library(nil, [[
  int mkdir(const char *path, unsigned int mode);
  void free(void *memory);
  char *strdup(const char *text);
]])
local library = native.other_library("edit.so.2", [[
  char *readline(const char *prompt);
  int add_history(const char *line);
  int read_history(const char *path);
  int write_history(const char *path);
  void using_history(void);
  char **rl_completion_matches(const char *text, char *(*generator)(const char *, int));
  char **(*rl_attempted_completion_function)(const char *text, int start, int end);
  char *rl_line_buffer;
  char *rl_completer_word_break_characters;
  int rl_completion_append_character;
]])

editor.available = library ~= nil

-- $XDG_STATE_HOME/flowlua/history; its folder is made if need be. nil without a home.
local function history_path()
  local home = os.getenv("HOME")
  local state = os.getenv("XDG_STATE_HOME") or (home and home .. "/.local/state")
  if not state then return nil end
  for _, folder in ipairs { home and home .. "/.local" or state, state, state .. "/flowlua" } do process.mkdir(folder, 448) end
  return state .. "/flowlua/history"
end

-- Words end at these; ":" and "." belong to the word, and so does "?" at its beginning.
local BREAKS = native.cast("char *", " \t\n\"'`@$><=;|&{(),+-*/%^#[]~")

-- Reads the history and lets Tab call complete(word, before), which returns the list of what the word may become; before: the line before
-- it. Both functions that libedit is given are callbacks of LuaJIT, which stay for as long as the process: open() is called once. An error
-- must not leave them, since C is in between, so one in complete() gives no completions.
function editor.open(complete)
  if not library then return end
  library.using_history()
  local path = history_path()
  if path then library.read_history(path) end
  library.rl_completer_word_break_characters = BREAKS
  local matches, before = {}, ""
  local generator = native.cast("char *(*)(const char *, int)", function(text, state)
    if state == 0 then
      local ok, list = pcall(complete, native.string(text), before)
      matches = ok and list or {}
    end
    local match = matches[state + 1]
    return match and process.strdup(match) or nil       -- libedit frees it
  end)
  library.rl_attempted_completion_function = function(text, start)
    before = native.string(library.rl_line_buffer):sub(1, start)
    return library.rl_completion_matches(text, generator)
  end
  library.rl_completion_append_character = 0
end

-- A line without its end, nil at the end of the input. Not compiled, since completion calls back into Lua.
function editor.read(prompt)
  if not library then
    io.write(prompt)
    io.flush()
    return io.read("*l")
  end
  local line = library.readline(prompt)
  if line == nil then return nil end
  local text = native.string(line)
  process.free(line)
  return text
end
jit.off(editor.read)

-- Adds an entry to the history. It may have several lines; a text of spaces alone is not added.
function editor.remember(text)
  if library and text:find("%S") then library.add_history(text) end
end

-- Writes the history. Nothing is said where that fails.
function editor.close()
  local path = library and history_path()
  if path then library.write_history(path) end
end

return editor

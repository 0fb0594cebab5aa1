-- digest.lua: MD5 (RFC 1321) and SHA-256 (FIPS 180-4) of files in hexadecimal digits, to verify downloads.
--
-- All arithmetic is in 32 bits with sign, as the bit library gives them; sums of two such numbers are exact as doubles, so tobit() after
-- each of them is enough. A digest reads its file once, in pieces, and keeps less than a block of 64 bytes between two pieces.

local bit = require "bit"

local band, bor, bxor, bnot = bit.band, bit.bor, bit.bxor, bit.bnot
local lshift, rshift, rol, ror, swap, tobit = bit.lshift, bit.rshift, bit.rol, bit.ror, bit.bswap, bit.tobit
local digest = {}

-- 32 bits of the fraction of x.
local function fraction(x) return tobit((x % 1) * 2 ^ 32 - ((x % 1) * 2 ^ 32) % 1) end

-- The 16 words of the block of 64 bytes that begins at a byte of text; the first byte of a word is its highest, or, of MD5, its lowest.
local function words_of(text, at, is_md5, words)
  for i = 0, 15 do
    local a, b, c, d = text:byte(at + 4 * i, at + 4 * i + 3)
    local word = bor(lshift(a, 24), lshift(b, 16), lshift(c, 8), d)
    words[i] = is_md5 and swap(word) or word
  end
end

---- MD5 ----------------------------------------------------------------------------------------------------------------------------------

-- RFC 1321, 3.4: SINES[i] is floor(2^32 |sin(i + 1)|), TURNS the rotations of each round.
local SINES, TURNS = {}, { { 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 } }
for i = 0, 63 do SINES[i] = tobit(math.floor(math.abs(math.sin(i + 1)) * 2 ^ 32)) end

-- Updates the state, a list of four words, by a block of 16 words, words[0] to words[15].
local function md5_block(state, words)
  local a, b, c, d = unpack(state)
  for i = 0, 63 do
    local round = math.floor(i / 16)
    local f, k
    if round == 0 then f, k = bor(band(b, c), band(bnot(b), d)), i
    elseif round == 1 then f, k = bor(band(d, b), band(bnot(d), c)), (5 * i + 1) % 16
    elseif round == 2 then f, k = bxor(b, c, d), (3 * i + 5) % 16
    else f, k = bxor(c, bor(b, bnot(d))), 7 * i % 16 end
    local sum = tobit(tobit(a + f) + tobit(SINES[i] + words[k]))
    a, d, c, b = d, c, b, tobit(b + rol(sum, TURNS[round + 1][i % 4 + 1]))
  end
  for i, value in ipairs { a, b, c, d } do state[i] = tobit(state[i] + value) end
end

---- SHA-256 ------------------------------------------------------------------------------------------------------------------------------

-- Fractions of the square and the cube roots of primes. A double has 52 bits: the cube roots, below 7, keep 49 of their fractions.
local ROOTS, KEYS = {}, {}
do
  local n = 2
  while #KEYS < 64 do
    local is_prime = true
    for k = 2, math.floor(math.sqrt(n)) do is_prime = is_prime and n % k ~= 0 end
    if is_prime then
      if #ROOTS < 8 then ROOTS[#ROOTS + 1] = fraction(math.sqrt(n)) end
      KEYS[#KEYS + 1] = fraction(n ^ (1 / 3))
    end
    n = n + 1
  end
end

-- FIPS 180-4, 6.2.2. Updates the state, a list of eight words, by a block of 16 words; words[16] to words[63] are overwritten.
local function sha256_block(state, words)
  for i = 16, 63 do
    local x, y = words[i - 15], words[i - 2]
    local s0, s1 = bxor(ror(x, 7), ror(x, 18), rshift(x, 3)), bxor(ror(y, 17), ror(y, 19), rshift(y, 10))
    words[i] = tobit(tobit(words[i - 16] + s0) + tobit(words[i - 7] + s1))
  end
  local a, b, c, d, e, f, g, h = unpack(state)
  for i = 0, 63 do
    local s1, choice = bxor(ror(e, 6), ror(e, 11), ror(e, 25)), bxor(band(e, f), band(bnot(e), g))
    local first = tobit(tobit(tobit(h + s1) + choice) + tobit(KEYS[i + 1] + words[i]))
    local s0, majority = bxor(ror(a, 2), ror(a, 13), ror(a, 22)), bxor(band(a, b), band(a, c), band(b, c))
    h, g, f, e, d, c, b, a = g, f, e, tobit(d + first), c, b, a, tobit(first + tobit(s0 + majority))
  end
  for i, value in ipairs { a, b, c, d, e, f, g, h } do state[i] = tobit(state[i] + value) end
end

---- of files -----------------------------------------------------------------------------------------------------------------------------

local ALGORITHMS = {
  md5 = { state = { 0x67452301, tobit(0xefcdab89), tobit(0x98badcfe), 0x10325476 }, block = md5_block, is_md5 = true },
  sha256 = { state = ROOTS, block = sha256_block },
}
digest.DIGITS = { [32] = "md5", [64] = "sha256" }      -- by the length of a text

local PIECE = 2 ^ 20      -- bytes that are read at once, blocks of 64

-- The digest of a file, in lower-case hexadecimal digits; read(count) gives up to `count` of its next bytes, nil at its end. algorithm:
-- "md5" or "sha256".
function digest.of(read, algorithm)
  local own, words, total, rest = ALGORITHMS[algorithm], {}, 0, ""
  local state = { unpack(own.state) }
  local function blocks(text)
    for at = 1, #text, 64 do
      words_of(text, at, own.is_md5, words)
      own.block(state, words)
    end
  end
  for piece in read, PIECE do
    total, rest = total + #piece, rest .. piece
    local whole = #rest - #rest % 64
    blocks(rest:sub(1, whole))
    rest = rest:sub(whole + 1)
  end
  -- The end: a bit 1, zeros up to 8 bytes before the end of a block, and the length in bits as 64-bit integer.
  local high, low = math.floor(total / 2 ^ 29), total * 8 % 2 ^ 32      -- in bits
  local function bytes(n) return string.char(math.floor(n / 2 ^ 24), math.floor(n / 2 ^ 16) % 256, math.floor(n / 256) % 256, n % 256) end
  local length = bytes(high) .. bytes(low)
  blocks(rest .. "\128" .. ("\0"):rep((55 - total) % 64) .. (own.is_md5 and length:reverse() or length))
  local digits = {}
  for i, word in ipairs(state) do digits[i] = bit.tohex(own.is_md5 and swap(word) or word) end
  return table.concat(digits)
end

return digest

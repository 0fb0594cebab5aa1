"""Writes spec/golden/byte_pairs.json: small tokenizers of each family, made by Hugging Face's library, and what they make of texts.

pip install tokenizers; python spec/golden/byte_pairs.py spec/golden/byte_pairs.json
"""

import json
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = CL100K.replace("{1,3}", "")
O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
CLIP = r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""

CORPUS = [
    "the quick brown fox's jumps over the lazy dogs and the foxes, it's what they'll do; we've seen 123 of them in 2024.",
    "Der schnelle braune Fuchs springt über den faulen Hund. Größe, Äpfel, Öl.",
    "Le garçon a mangé des crêpes à l'hôtel, où ça?",
    "Быстрая коричневая лиса прыгает через ленивую собаку",
    "素早い茶色の狐が怠け者の犬を飛び越える",
    "敏捷的棕色狐狸跳过懒狗",
    "다람쥐 헌 쳇바퀴에 타고파",
    "if (x == 10) {\n    return foo(bar, 'baz');\n}\n\n\tprint(\"Hello, World!\")\n",
    "नमस्ते दुनिया",
    "שלום עולם مرحبا",
    "😀 😀👍🏽 👨‍👩‍👧 wonderful!!! ... --- ???",
    "HelloWorld camelCase snake_case UPPER lower I'M YOU'RE",
    "tab\ttab  two   three    spaces \n\n\n lines\r\n",
]

TEXTS = CORPUS + [
    "",
    " ",
    "  ",
    "a",
    "a ",
    " a",
    "\n",
    "\n\n",
    " \n ",
    "a\nb",
    "a\r\nb",
    "\t\tx",
    "x  y",
    "x   y    z     ",
    "don't DON'T Don'T it's IT'S 'sup 'S",
    "1 12 123 1234 12345 1,234.56 3.14e-10 ½ ² Ⅷ ٣٤ 一二",
    "é e\u0301 ê\u0323 \u0301 a\u0300\u0323b",
    "ﬁ ﬀ Ａ１ ㎏ ﷺ ½ ①",
    "한국어 \u1112\u1161\u11ab 각",
    "İstanbul ıI ẞ ß ΑΣ ς ǅ",
    "<s>hi</s>",
    "<|endoftext|>",
    "a<|endoftext|>b",
    " <|endoftext|> ",
    "<mask>",
    "a <mask> b",
    "a  <mask>  b<mask>",
    "day today day. daylight",
    "DAY Day",
    "left  <l>  x",
    "right <r>   x",
    "<l><r>",
    "<|end",
    "[CLS] x [SEP]",
    "x\u00a0y\u2003z\u3000w",
    "\u200b\ufeffx\u200d",
    "a-b--c-d-",
    "-,-;;x,;-y",
    "end.",
    "(a) [b] {c} \"d\" 'e' `f`",
    "a_b __c__",
    "http://www.example.com/a?b=c&d=e#f",
    "user@example.com",
    "$100 €50 £20 ¥3",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U00020000\U0002a6d6",
    "naïve café résumé",
    "ſt 'ſ \u212aelvin",
    "▁x ▁▁ y",
    "Ġx Ċ",
    "<0x41> <0xE6>",
    "x</w> y",
    "the" * 40,
    "ab" * 50,
    " " * 40,
    "1" * 30,
    "!" * 30 + "\n" * 5,
    "a" * 70,
    "é" * 30,
    "😀" * 10,
    "ה\u05b0\u05d9",
    "ก็ที่",
    "ᚠᛇᚻ",
    "\u0001\u0007\u007f\u0085x",
]

PARTS = [
    "the",
    " the",
    "The",
    " fox",
    "'s",
    "'LL",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "1",
    "23",
    "456",
    ".",
    ",",
    "-",
    "--",
    "!?",
    "é",
    "e\u0301",
    "ü",
    "ß",
    "狐",
    "茶色",
    "лиса",
    "한",
    "😀",
    "👍🏽",
    "<|endoftext|>",
    "<mask>",
    "day",
    " day ",
    "<l>",
    "<r>",
    "\u00a0",
    "\u3000",
    "A",
    "BC",
    "_",
    "/",
    "(",
    ")",
    '"',
    "▁",
    "İ",
    "ﬁ",
    "½",
    "नम",
    "שָׁ",
    "x",
    "yz",
    " dogs",
    "ing",
    "{",
    "}",
    "\u0300",
    "\u0323",
    "Ⅷ",
    "ſ",
    "\u200d",
]


def random_texts(count):
    draw = random.Random(7)
    return ["".join(draw.choice(PARTS) for _ in range(draw.randint(1, 12))) for _ in range(count)]


ALPHABET = pre_tokenizers.ByteLevel.alphabet()
END = "<|endoftext|>"


def byte_level(pre, size=420, post=None, normalizer=None, specials=(END,), **model):
    made = Tokenizer(models.BPE(**model))
    made.pre_tokenizer, made.decoder = pre, decoders.ByteLevel()
    if normalizer:
        made.normalizer = normalizer
    if post:
        made.post_processor = post
    made.train_from_iterator(
        CORPUS * 2,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=list(specials),
            initial_alphabet=ALPHABET,
            show_progress=False,
            **{name: value for name, value in model.items() if name == "end_of_word_suffix"},
        ),
    )
    return made


def split(pattern, prefix=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(prefix, use_regex=False)])


def gpt2():
    made = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), post=processors.ByteLevel(trim_offsets=True))
    made.add_tokens(
        [AddedToken("day", single_word=True), AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True)]
    )
    return made


def roberta():
    made = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), specials=["<s>", "<pad>", "</s>", "<unk>"])
    made.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return made


def llama2():
    made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    made.train_from_iterator(
        CORPUS[:3] * 2, trainers.BpeTrainer(vocab_size=420, special_tokens=["<unk>", "<s>", "</s>"] + bytes_, show_progress=False)
    )
    values = json.loads(made.to_str())
    values["added_tokens"] = values["added_tokens"][:3]
    values["pre_tokenizer"] = None
    made = Tokenizer.from_str(json.dumps(values))
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return made


def llama3():
    made = byte_level(split(CL100K), ignore_merges=True, specials=["<|begin|>", END])
    made.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<|begin|> $A", pair="<|begin|> $A <|begin|>:1 $B:1", special_tokens=[("<|begin|>", 0)]),
        ]
    )
    return made


def qwen2():
    return byte_level(split(QWEN2), normalizer=normalizers.NFC(), post=processors.ByteLevel(trim_offsets=False))


def clip():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP), "removed", invert=True), pre_tokenizers.ByteLevel(False)])
    made = byte_level(
        pre,
        end_of_word_suffix="</w>",
        unk_token=END,
        specials=["<|startoftext|>", END],
        size=720,
        normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
    )
    made.post_processor = processors.RobertaProcessing((END, 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False)
    return made


def characters(pre, decoder, normalizer=None, **options):
    made = Tokenizer(models.BPE(unk_token="[UNK]", **{k: v for k, v in options.items() if k == "fuse_unk"}))
    made.pre_tokenizer, made.decoder = pre, decoder
    if normalizer:
        made.normalizer = normalizer
    trainer = {k: v for k, v in options.items() if k != "fuse_unk"}
    made.train_from_iterator(
        CORPUS[:4] * 2, trainers.BpeTrainer(vocab_size=260, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False, **trainer)
    )
    return made


def metaspace():
    made = characters(pre_tokenizers.Metaspace(prepend_scheme="first"), decoders.Metaspace(prepend_scheme="first"))
    made.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    made.add_tokens([AddedToken("DAY", normalized=True), AddedToken("<r>", rstrip=True)])
    return made


def bert_like():
    made = characters(
        pre_tokenizers.Sequence(
            [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation(), pre_tokenizers.Digits(individual_digits=True)]
        ),
        decoders.BPEDecoder(suffix="</w>"),
        end_of_word_suffix="</w>",
        normalizer=normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase(), normalizers.StripAccents(), normalizers.Strip()]),
    )
    made.add_tokens([AddedToken("DAY", normalized=True, single_word=True)])
    return made


def parts():
    pre = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("-", "merged_with_previous"),
            pre_tokenizers.Split(Regex("[,;]+"), "merged_with_next"),
            pre_tokenizers.Split(Regex(r"[A-Z]"), "contiguous"),
            pre_tokenizers.Digits(),
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    return byte_level(pre)


def early_bytes():
    pre = pre_tokenizers.Sequence(
        [pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False), pre_tokenizers.Split("Ġ", "merged_with_next")]
    )
    return byte_level(pre, normalizer=normalizers.NFKC())


def spaces():
    return characters(
        pre_tokenizers.WhitespaceSplit(), decoders.Fuse(), normalizer=normalizers.NFD(), fuse_unk=True, continuing_subword_prefix="##"
    )


FAMILIES = {
    "gpt2": gpt2,
    "roberta": roberta,
    "llama2": llama2,
    "llama3": llama3,
    "qwen2": qwen2,
    "o200k": lambda: byte_level(split(O200K)),
    "clip": clip,
    "metaspace": metaspace,
    "bert_like": bert_like,
    "parts": parts,
    "early_bytes": early_bytes,
    "spaces": spaces,
}


def offsets_in_bytes(text, offsets):
    """First and last bytes, from 1, of offsets in characters; "0 0" of tokens that come from no text is not changed."""
    at = [0]
    for character in text:
        at.append(at[-1] + len(character.encode()))
    return [number for first, stop in offsets for number in (at[first] + 1, at[stop])]


def case(made, text):
    encoded = made.encode(text)
    offsets = offsets_in_bytes(text, encoded.offsets)
    for i, special in enumerate(encoded.special_tokens_mask):
        if special:
            offsets[2 * i : 2 * i + 2] = [0, 0]
    made_case = {"ids": " ".join(map(str, encoded.ids)), "offsets": " ".join(map(str, offsets))}
    decoded, whole = made.decode(encoded.ids), made.decode(encoded.ids, skip_special_tokens=False)
    if decoded != text:
        made_case["decoded"] = decoded
    if whole != decoded:
        made_case["whole"] = whole
    return made_case


def pair(made, first, second):
    encoded = made.encode(first, second)
    made.enable_truncation(9)
    short = made.encode(first, second)
    single = made.encode(first)
    made.no_truncation()
    return {
        "ids": " ".join(map(str, encoded.ids)),
        "type_ids": " ".join(map(str, encoded.type_ids)),
        "short": " ".join(map(str, short.ids)),
        "single": " ".join(map(str, single.ids)),
        "plain": " ".join(map(str, made.encode(first, add_special_tokens=False).ids)),
    }


def trained():
    """What training gives for settings that Tokenizer.train has."""
    made = []
    for options in [
        {"vocab_size": 400},
        {"vocab_size": 1000, "min_frequency": 3, "special_tokens": ["<|a|>", "b"]},
        {"vocab_size": 330, "max_token_length": 4},
        {"vocab_size": 5000},
    ]:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(initial_alphabet=ALPHABET, show_progress=False, **options))
        vocabulary = tokenizer.get_vocab()
        model = json.loads(tokenizer.to_str())["model"]
        made.append(
            {"options": options, "tokens": sorted(vocabulary, key=vocabulary.get), "merges": [" ".join(m) for m in model["merges"]]}
        )
    return made


def main():
    texts = TEXTS + random_texts(100)
    families = []
    for name, make in FAMILIES.items():
        made = make()
        families.append(
            {"name": name, "file": made.to_str(), "cases": [case(made, text) for text in texts], "pair": pair(made, CORPUS[0], CORPUS[1])}
        )
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(
            {"texts": texts, "corpus": CORPUS, "families": families, "trained": trained()}, file, ensure_ascii=True, separators=(",", ":")
        )


main()

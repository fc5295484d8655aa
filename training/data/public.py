"""The public sources: where their files are, under which licence, and what was recorded of the editions used here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from training.data.download import File
from training.data.texts import SQLITE
from training.data.transliteration import AKSHARANTAR_CODES


@dataclass(frozen=True)
class Source:
    title: str
    home: str
    licence: str
    files: tuple[File, ...]
    hub: str = ""  # the data set's name on the Hub
    paper: str = ""  # its number at arXiv


def hub(folder: str, repo: str, *names: str) -> tuple[File, ...]:
    return tuple(File(f"{folder}/{name}", repo=repo) for name in names)


SOURCES: dict[str, Source] = {
    "multi30k": Source(
        "Multi30k (task 1, test_2016_flickr)",
        "https://github.com/multi30k/dataset",
        "none stated; used for research and teaching",
        hub("multi30k", "bentrevett/multi30k", "train.jsonl", "val.jsonl", "test.jsonl"),
        hub="bentrevett/multi30k",
        paper="1605.00459",
    ),
    "tatoeba": Source(
        "Tatoeba, as collected by manythings.org",
        "https://tatoeba.org",
        "CC BY 2.0",
        (File("tatoeba/deu-eng.zip", "https://www.manythings.org/anki/deu-eng.zip"),),
    ),
    "dakshina": Source(
        "Dakshina 1.0",
        "https://github.com/google-research-datasets/dakshina",
        "CC BY-SA 4.0",
        (
            File(
                "dakshina_dataset_v1.0.tar",
                "https://storage.googleapis.com/gresearch/dakshina/dakshina_dataset_v1.0.tar",
            ),
        ),
        paper="2007.01176",
    ),
    "aksharantar": Source(
        "Aksharantar",
        "https://huggingface.co/datasets/ai4bharat/Aksharantar",
        "CC BY and CC0",
        hub("aksharantar", "ai4bharat/Aksharantar", *(f"{code}.zip" for code in AKSHARANTAR_CODES.values())),
        hub="ai4bharat/Aksharantar",
        paper="2205.03018",
    ),
    "flickr8k": Source(
        "Flickr8k",
        "https://github.com/jbrownlee/Datasets/releases/tag/Flickr8k",
        "research and teaching; the photographs may not be passed on",
        tuple(
            File(f"flickr8k/{name}", f"https://github.com/jbrownlee/Datasets/releases/download/Flickr8k/{name}")
            for name in ("Flickr8k_text.zip", "Flickr8k_Dataset.zip")
        ),
        hub="intro/flickr8k",
    ),
    "war-and-peace": Source(
        "War and Peace, Project Gutenberg's text",
        "https://www.gutenberg.org/ebooks/2600",
        "public domain",
        (File("lm/war_and_peace.txt", "https://cs.stanford.edu/people/karpathy/char-rnn/warpeace_input.txt"),),
    ),
    "sqlite-c": Source(
        "SQLite 3.40.1",
        "https://www.sqlite.org",
        "public domain",
        (
            File(
                f"lm/{SQLITE}",
                f"https://www.sqlite.org/2022/{SQLITE}",
                sha256="5064126aa50db20c35578b612b56c3129425c0506ed4d1610efa4a0f01bdf8d0",
            ),
        ),
    ),
    "tiny-shakespeare": Source(
        "tiny Shakespeare",
        "https://github.com/karpathy/char-rnn",
        "public domain",
        (
            File(
                "lm/tiny_shakespeare.txt",
                "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            ),
        ),
    ),
}


def sources_of(name: str) -> tuple[str, ...]:
    """The sources that a set joins: "dakshina+aksharantar:hi" -> ("dakshina", "aksharantar")."""
    return tuple(part for part in name.partition(":")[0].split("+") if part in SOURCES)


def credits(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Title, home and licence of each of these sources."""
    return {name: {"title": SOURCES[name].title, "home": SOURCES[name].home, "licence": SOURCES[name].licence} for name in names}


def files_of(name: str) -> list[File]:
    """The public files that a set is read from."""
    language = name.partition(":")[2]
    codes = {f"aksharantar/{code}.zip" for key, code in AKSHARANTAR_CODES.items() if language in (key, "all")}
    files = [file for source in sources_of(name) for file in SOURCES[source].files]
    return [file for file in files if not file.path.startswith("aksharantar/") or file.path in codes]


# sha256 of what is read from each source, in `records.digest`'s form: the same for every layout of the same edition.
CONTENTS: dict[str, str] = {
    "aksharantar:bn": "7a23e8324ec88d9500ef58b69fe8b5c3fa1d2f89d3b66833f9593a99a5ddd75e",
    "aksharantar:gu": "5be52318bda50f379a22c58cc60fff664ab5c51badbb2263991a6de9a6c9e754",
    "aksharantar:hi": "aad861fe658f14214181bc63c4e82a83718ec8bce7dd0a7f062b95e1e95d2c00",
    "aksharantar:kn": "8fee120503c39b9ac02fa551bc2fd9b5cc6506e1b8f29d06acb1f8b5952a2b68",
    "aksharantar:ml": "958f3f5a36425d35fd0dabde5d9093378f6bb8db075cab2665ff60342327b766",
    "aksharantar:mr": "8cc7aa031b51b72117f7278e23308f6e24fec7230973cb9385ef44040f1edfb2",
    "aksharantar:pa": "b682f9467f0a16bd8168ef37987f1e1ffb5ff6d646b49f551761bd3a393a51c6",
    "aksharantar:sd": "c98d25dfd95bb07d317da6cfb40fb656346ba5e40c23008a1e8a07596e8b9dbf",
    "aksharantar:ta": "cfa841ae7eb6b9fb78cfa1536577f40444ce2580edd3114b31365ccc3809a099",
    "aksharantar:te": "7b8a1c00fd6f46ee2f76e222210719cd570128e3d8ed032f76f4736ab1feb681",
    "aksharantar:ur": "39210b98dc1b4299bbea792dd82a9aae6cb8060bfa521d225bc03b84516b5d3c",
    "dakshina:bn": "822bd738f8d889e439edc4e2dac6f716c3eda0548c0e0cf6a7d62cfead8a3233",
    "dakshina:gu": "b4dd6d284093c039a8e75bc2fb4f4caa60b3553f7e2959b8ec13a351e07a66c0",
    "dakshina:hi": "7418cc2b336fb8ddc075b242723e2fe4c3db8793d1f511c3f2d830a537ba5b1b",
    "dakshina:kn": "106cbe458051cc8dc190e4d4abb5d1b3a2f6a7c0fc8dc9d8123901de74f89e06",
    "dakshina:ml": "c147828a717fc387dcddbd6affd298ba8e50200d1e8b77a0d1ef7e2616da9369",
    "dakshina:mr": "4e305081c87b80fccc08a3eca592d53781c92957297a7743d67bd37b1a747612",
    "dakshina:pa": "1cb5bc95dfe35450d775666f82e4b190a65352d3133f33f7de9e92f4078d5311",
    "dakshina:sd": "f162e6157074b2041525b69375e911d3b953181886dfbe0ee80af981b4f73f8a",
    "dakshina:si": "9ef2c4f96240b75a196c2683e43cc42ced9664b889a82ed801fc6db491543a8e",
    "dakshina:ta": "bc9a76f4d21cf22aa5e8f839c9816ae1795fb24e0ee38999782c490c4bb91069",
    "dakshina:te": "5a8d1b4b32786ceb54e0aa63dbac4a925c30333c200708680f23773644b5656b",
    "dakshina:ur": "8679784349562cfa3b5532d48aaa9ebbb155a8559ea4f4a4ceba4b20b0425100",
    "flickr8k:photographs": "c6ce09ff3bb0e8ec8066ca83f59ee3e55bc601ecc63757e1a80ef763c3f9b384",
    "flickr8k": "f5aa7b0978564fb8656003cc09df637ae9681d3ab8a936132a82f97a0e4f6786",
    "multi30k": "d849995f58ffa8ecf1fba5c20e8f96f9454794f52bd17255b6104c4dff338a54",
    "sqlite-c": "81b44b038fb17b4ae245c9f6c7d9944c817a62d42f1a0b986d02b4a260928bd6",
    "tatoeba": "1146d242b1b2105e03d1fc2b8936717c89cf56e383f120ec49b3f355f60b06cb",
    "tiny-shakespeare": "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    "war-and-peace": "2f4885a73244ab9204a7a031f3d009aece5205f8caa9603c157957cda586f0fd",
}

# sha256 of the splits of each set, in `records.fingerprint`'s form.
FINGERPRINTS: dict[str, str] = {
    "multi30k": "dd9e1d177c75d8b1a7ad92050eaead4676c84ae60eee7ab55837ac6c37014b83",
    "tatoeba": "80d5b16ef34c72eec10e08248037638735c18aebe44dbbab8b9f1209d23bf24d",
    "multi30k+tatoeba": "9cd2fdd9957791514bb08b4bfb73f41b501d3ca3cb88b2341037736c414ca696",
    "flickr8k": "bc51a861696a0fce427c8861cf069c1b5b2789151cbdfaa45c010d9220d35b9e",
    "reverse": "960bf974502b8d8fb014d5edd59eeff1bfa401e3e0417346890792fc85b6c091",
    "war-and-peace": "091fba8236b0c228d9a7d0dba3c7d1a43b5f5d84329c22313e2dc30c37cb1d99",
    "sqlite-c": "1157bef629a51c0868905bb7f3fa1a03cd9634cbdb41c413b5ca6012547e2e2e",
    "tiny-shakespeare": "0ee673297b4ccdd4270a22bfdcdc6ecc80a64a10c3156080c3cc8596f793c41d",
    "dakshina:bn": "685e47e43d0b259999d294116be52452306f103d8275420744de64b6ff0c7cb0",
    "dakshina:gu": "61d052ad5bcf484873d22abb384df3cf01cbeea43fb68ff2dc639fdb670c79ec",
    "dakshina:hi": "86b51979da519f49d72a1871bd18198b81a433a6965c98d7c9789ee9b2951b12",
    "dakshina:kn": "ddca672d4d9ef050bdeecf52cf535a62b24922d42167fd364fa411f1ff0497fa",
    "dakshina:ml": "fded0b5eab0152fb08c461378a47a179228f9152e4bc15c2e418a87b9a4f8c31",
    "dakshina:mr": "99f530fc5f2a6ce2b321c88762ab7a22611e772fde6858fd62fe4da257e2454e",
    "dakshina:pa": "bbf32799bfb0176594252d58becb7036aebf0bd8a849bb3f752d422219dee047",
    "dakshina:sd": "b3a5ed2310da43621f8652a6f9c83d08f428be20299a9bdc2e3b427722896aee",
    "dakshina:si": "72e697798cc9176971d4f45aef44081ecbd1a640e38102ae69ca925dbbb19243",
    "dakshina:ta": "2cf34ada6917c2fab41ed602a77e72215a5436881f2b6221cdb244b00cff569b",
    "dakshina:te": "173f2caa51d8718e4c51c640c591369671e6e8af1843e7e34dbda6a08460f825",
    "dakshina:ur": "657bdfd84e307b93c4456203f7e62ef33dd141668069be33cb26ca8b4a7fbe3b",
    "dakshina+aksharantar:bn": "8d387e8eb4bac9fa62718edc500b4993744bd210f79a45647931dd2eae701790",
    "dakshina+aksharantar:gu": "6b949ccdc1c13088ff0dfefd18d79775f5ac9c9e3a23b9490d5defe1e2593ae1",
    "dakshina+aksharantar:hi": "8021bb25bda84c0d096657c5e16e6d7207f6529b1890ec51c8a70f781ec83e49",
    "dakshina+aksharantar:kn": "b58ee786b59c3e08b89881cc6341075e14f3a6dd2b757fda4853db05e81a6a01",
    "dakshina+aksharantar:ml": "3e6519ca347495b0914bf7568d2fd359f051cc4a594bb87e07b5117141cff456",
    "dakshina+aksharantar:mr": "0f086e3691953cc1a7bdb178cb8fd62379a40af6f39825318526a335e2ff9f84",
    "dakshina+aksharantar:pa": "ba3b2453b066296a75679b73ecd2f96f33565c5817ed5acc664bc478eb1c5daf",
    "dakshina+aksharantar:sd": "2f2acd326d234e13d85127de55c0f950b7af31c98d486b013668e2a3d0a5fb6d",
    "dakshina+aksharantar:si": "72e697798cc9176971d4f45aef44081ecbd1a640e38102ae69ca925dbbb19243",
    "dakshina+aksharantar:ta": "ebda9949c166d9eecf8cb511b7db72fbfc66813d6776b2dafee1970c6aec1e67",
    "dakshina+aksharantar:te": "0967f20d133cad75a12ef789ca47443f8b2b07f0f6af9eeb022ed6c1379ff880",
    "dakshina+aksharantar:ur": "ac53689415d17803687616741ec953a744301958f16e3be26eb33a4a1438007f",
    "dakshina:all": "b68b23a1c6da0dfa3ca78b3287635e3d8e89857ab9a3927afccdf71303d5dbfa",
    "dakshina+aksharantar:all": "7c824601246cc6ea9542616c6c52afd9583a03564c5f77c3024d424d2bcc9e15",
}

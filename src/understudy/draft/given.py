"""Whether texts are names of people, by names that many people have.

Pure. The names are those that tables of births and telephone books list first; towns, months, colours
and plain words are not among them, although people have such names as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from understudy.draft.lists import word_set

_GIVEN = word_set("""
    james mary robert patricia john jennifer michael linda david elizabeth william barbara richard
    susan joseph jessica thomas sarah charles karen christopher nancy daniel lisa matthew betty
    anthony margaret sandra donald ashley steven kimberly paul emily andrew donna joshua michelle
    kenneth carol kevin amanda brian dorothy george melissa edward deborah ronald stephanie timothy
    rebecca jason sharon jeffrey laura ryan cynthia jacob kathleen gary amy nicholas shirley eric
    angela jonathan helen stephen anna larry brenda justin pamela scott nicole brandon samantha
    benjamin katherine samuel emma gregory ruth alexander christine olivia sophia isabella mia
    evelyn abigail ella henry liam noah oliver lucas ethan logan owen peter simon philip
    alan ian colin graham keith nigel fiona heather claire rachel hannah chloe harry alfie arthur
    chris mike tom jim joe dan steve dave ann jane kate julia alice diana martha teresa gloria
    hans peter wolfgang klaus jurgen dieter manfred uwe gunter horst bernd werner heinz stefan
    andreas thorsten matthias markus sebastian florian tobias jan felix leon finn jonas maximilian
    paula lena lea sabine petra monika ursula renate helga karin brigitte ingrid gisela katrin anja
    heike birgit anke silke ulrike johanna franziska greta frieda
    jean marie pierre michel andre philippe louis nathalie isabelle sylvie catherine francoise
    monique jacqueline jacques alain bernard francois gerard christophe laurent nicolas julien
    thierry pascal olivier frederic sebastien guillaume antoine mathieu camille lea manon ines
    jade hugo theo nathan gabriel raphael jules zoe elodie aurelie celine sophie valerie veronique
    martine brigitte anne juliette
    jose antonio manuel francisco juan javier carlos miguel alejandro rafael fernando sergio pablo
    jorge alberto luis alvaro diego adrian raul enrique ramon vicente ruben oscar andres joaquin
    carmen josefa isabel dolores pilar teresa cristina marta lucia elena raquel rosa
    beatriz silvia mercedes ines sofia valentina camila ximena guadalupe juana veronica pedro
    jesus eduardo ricardo roberto mario hector gustavo
    giuseppe giovanni mario luigi angelo vincenzo pietro salvatore franco domenico bruno paolo
    michele giorgio aldo luciano marco andrea francesco alessandro matteo lorenzo davide luca
    simone federico riccardo stefano giulia chiara francesca federica sara martina alessia silvia
    valentina elisa ilaria giovanna rosa angela lucia paola simona
    joao ana antonia francisca adriana juliana marcia fernanda patricia aline sandra bruna amanda
    mariana leticia larissa rafaela marcos felipe rodrigo thiago tiago mateus vinicius gustavo
    joaquim rui nuno goncalo catarina joana rita
    jan piet kees henk willem gerrit johannes cornelis hendrik bart jeroen sander daan sem bram
    lotte sanne femke anouk marieke wilhelmina els ingrid
    lars erik karl anders per nils johan mikael gustav sven hakan bjorn magnus fredrik henrik
    astrid karin kristina margareta birgitta eva maria maja elsa ebba agneta sigrid solveig kari
    jens soren niels ole mette kirsten hanne ingeborg
    jakub tomasz piotr krzysztof andrzej pawel marcin michal grzegorz jozef stanislaw katarzyna
    malgorzata agnieszka krystyna ewa zofia magdalena joanna jiri pavel jaroslav martina
    ivan dmitri dmitry sergei sergey andrei alexei alexey vladimir nikolai mikhail olga tatiana
    natalia natalya svetlana irina ekaterina oksana
    mehmet mustafa ahmet ali huseyin hasan ibrahim ismail yusuf omer emre fatma ayse emine hatice
    zeynep elif meryem aylin
    mohammed muhammad mohamed mohammad ahmed mahmoud abdullah khalid hassan hussein omar youssef
    fatima aisha khadija zainab mariam layla
    aarav vivaan aditya arjun rahul rohan rohit amit sanjay rajesh suresh ramesh vijay vikram
    deepak anil sunil manoj priya ananya kavya neha pooja sunita anita lakshmi divya anjali shreya
    wei fang xiu ying jing min jun hiroshi takashi kenji akira haruto yuki sakura yoko keiko
    minjun jiho seoyeon nguyen
""")
_FAMILY = word_set("""
    smith johnson williams jones garcia miller davis rodriguez martinez hernandez lopez gonzalez
    wilson anderson thomas taylor moore jackson martin perez thompson harris sanchez clark ramirez
    lewis robinson walker allen wright torres nguyen flores adams nelson hall rivera campbell
    mitchell carter roberts gomez phillips evans turner diaz parker cruz edwards collins reyes
    stewart morris morales murphy rogers gutierrez ortiz morgan cooper peterson bailey reed kelly
    howard ramos kim cox ward richardson watson brooks chavez bennett mendoza ruiz hughes alvarez
    castillo sanders patel myers ross foster jimenez
    muller schmidt schneider fischer weber meyer wagner becker schulz hoffmann schafer koch bauer
    richter klein wolf schroder neumann schwarz zimmermann braun kruger hofmann hartmann lange
    vogel friedrich scholz moller konig walter kaiser fuchs lang gunther berger winkler lorenz
    schmitt werner krause meier lehmann huber mayer maier
    bernard dubois robert richard petit durand leroy moreau simon laurent lefebvre michel david
    garnier masson faure henry chevalier blanc guerin boyer rousseau lemaire perrin legrand gauthier
    bertrand roux vincent fournier morel girard andre lefevre mercier dupont lambert bonnet
    fernandez martin alonso gutierrez navarro dominguez vazquez serrano molina castro
    rossi russo ferrari esposito bianchi romano colombo ricci marino greco bruno gallo conti
    gatti marchetti santoro mariani rinaldi caruso ferrara galli martini leone longo gentile
    deluca costa giordano mancini rizzo lombardi moretti
    silva santos oliveira souza sousa lima pereira ferreira rodrigues almeida nascimento alves
    carvalho araujo ribeiro gomes martins rocha barbosa
    jansen devries vandenberg bakker visser smit meijer mulder bos vos peters hendriks dekker
    andersson johansson karlsson nilsson eriksson larsson olsson persson svensson gustafsson
    hansen jensen nielsen pedersen andersen christensen larsen sorensen johansen olsen
    nowak kowalski wisniewski wojcik kowalczyk kaminski lewandowski novak svoboda novotny horvath
    nagy kovacs popescu ionescu ivanov petrov smirnov kuznetsov
    yilmaz kaya demir celik sahin yildiz aydin khan hussain
    sharma verma gupta singh kumar reddy nair iyer das mehta joshi rao kulkarni desai
    wang zhang liu chen yang huang zhao wu zhou xu tanaka suzuki sato takahashi watanabe yamamoto
    kobayashi park choi tran pham
""")
_TITLED = re.compile(
    r"(?:(?:mr|mrs|ms|miss|sir|dr|prof|rev|hr|fr|dra|drs|sr|sra|srta|sig|dott|dott\.ssa|lic|dhr|mevr|mme|mlle|ing)\.?"
    r"|m\.|herr|frau|fru|monsieur|madame|signora?|senora?|shri|smt) (?=\D+$)"
)
_INITIALS = re.compile(r"([^\W\d_]\.[ -]?){2,5}")
_BESIDE = word_set("""
    md phd rn dds esq jr sr ii iii dr prof
    de del della di da das do dos van der den von zu la le el al bin ben
""")
"""What stands beside names: degrees and particles."""
_EASTERN = re.compile(
    "[王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈"
    "姚卢姜崔钟谭陆汪范金石廖贾夏韦方白邹孟熊秦邱江尹薛闫段雷侯龙史陶贺顾毛郝龚邵万]"
    "[\u4e00-\u9fff]{1,2}|(佐藤|鈴木|高橋|田中|渡辺|伊藤|山本|中村|小林|加藤|吉田|山田|佐々木|山口|松本|井上|木村|斎藤|清水|山崎)"
    "[ \u3000]?[\u3040-\u9fff]{1,4}|[김이박최정강조윤장임한오서신권황안송류홍][가-힣]{2}"
)
"""A family name, and one sign or two more: of China, Japan or Korea."""
_PLACES = word_set("san santa santo sao st ste saint sainte sankt")
"""What a saint gave the name to is no person."""
_LABEL = 0.25
_SHARE = 0.4
_ALONE = 0.5
_INITIALLED = 4  # Shorter words end like a name by chance


def names_people(texts: Sequence[str]) -> bool:
    """Whether distinct texts are names of people: "Rossi, Anna", "Dr. Braun", "MARTIN", "Priya".

    Nearly all begin with a title, or are initials; or two fifths are two to four words, one of them a
    common given name; or half are one word, a common given or family name; or nearly all are names
    of China, Japan or Korea in their own writing. Where a word that is no name stands in a quarter of
    them, they are things: "Jackson County", "St. Mary Hospital".
    """
    if sum(_EASTERN.fullmatch(text.strip()) is not None for text in texts) >= 0.9 * len(texts):
        return True
    plain = [_folded(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)) for text in texts]
    if sum(_TITLED.match(text) is not None for text in plain) >= 0.9 * len(plain):
        return True
    if sum(_INITIALS.fullmatch(text) is not None for text in plain) >= 0.9 * len(plain):
        return True
    split = [
        [word for word in re.findall(r"[^\W\d_]{2,}", text) if word not in _BESIDE]
        for text in plain
    ]
    split = [
        [] if re.search(r"\d", text) else words for text, words in zip(plain, split, strict=True)
    ]
    held = Counter(word for words in split for word in set(words))
    often = {word for word, many in held.items() if many > _LABEL * len(texts)}
    if not often <= _GIVEN | _FAMILY:
        return False
    several = sum(
        2 <= len(words) <= 4 and not _GIVEN.isdisjoint(words) and _PLACES.isdisjoint(words)
        for words in split
    )
    alone = sum(len(words) == 1 and _is_name(words[0]) for words in split)
    return several >= _SHARE * len(texts) or alone >= _ALONE * len(texts)


def _is_name(word: str) -> bool:
    """Whether it is a name, or an initial and one, as people log in: `jsmith`."""
    return word in _GIVEN or word in _FAMILY or (len(word) > _INITIALLED and word[1:] in _FAMILY)


def _folded(text: str) -> str:
    """In lower case, without accents."""
    apart = unicodedata.normalize("NFKD", text.strip().casefold())
    return "".join(sign for sign in apart if not unicodedata.combining(sign))

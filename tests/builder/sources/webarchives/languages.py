"""Pages that declare no encoding: a title and a sentence or two, in the encodings of the time."""

import unicodedata

CZECH = (
    "Zprávy z hlavního města",
    "Včera večer přišla první vážná žádost o změnu územního plánu. "
    "Šťastný muž šel přes náměstí a žluťoučký kůň úpěl ďábelské ódy.",
)
SLOVAK = (
    "Správy z nášho mesta",
    "Vláda dnes schválila návrh zákona o ochrane spotrebiteľa. "
    "Ľudia čakajú dlhé hodiny, kým sa dočkajú ošetrenia v nemocnici, tvrdí štúdia.",
)
POLISH = (
    "Wiadomości z całego świata",
    "Wczoraj wieczorem odbyło się posiedzenie rządu, na którym "
    "przyjęto ustawę o ochronie środowiska. Źródła podają, że będą też następne.",
)
HUNGARIAN = (
    "Friss hírek és időjárás",
    "Tegnap este az országgyűlés elfogadta a költségvetést. "
    "Az önkormányzat szerint jövőre több pénz jut az iskolákra, főleg a fűtésre.",
)
SLOVENE = (
    "Novice iz našega mesta",
    "Včeraj zvečer je državni zbor sprejel zakon o varstvu okolja. "
    "Župan pravi, da bodo šole dobile več denarja že čez šest mesecev.",
)
CROATIAN = (
    "Vijesti iz našeg grada",
    "Jučer navečer održana je sjednica gradskog vijeća. "
    "Građani će uskoro moći plaćati račune i putem interneta, kaže gradonačelnik Šimić.",
)
ROMANIAN = (
    "Ştiri din oraşul nostru",
    "Guvernul a hotărât astăzi să mărească salariile învăţătorilor. "
    "Oamenii aşteaptă de mult această veste, însă nu toţi sunt mulţumiţi.",
)
RUSSIAN = (
    "Новости нашего города",
    "Вчера вечером состоялось заседание городской думы, на котором "
    "обсуждался бюджет на следующий год. Жители ждут перемен.",
)
UKRAINIAN = (
    "Новини нашого міста",
    "Учора ввечері відбулося засідання міської ради, на якому "
    "обговорювали бюджет на наступний рік. Її рішення підтримали всі мешканці.",
)
BULGARIAN = (
    "Новини от нашия град",
    "Снощи се проведе заседание на общинския съвет, на което беше "
    "обсъден бюджетът за следващата година. Гражданите очакват промени.",
)
GREEK = (
    "Νέα από την πόλη μας",
    "Χθες το βράδυ συνεδρίασε το δημοτικό συμβούλιο και συζήτησε τον "
    "προϋπολογισμό. Οι κάτοικοι περιμένουν αλλαγές από την επόμενη χρονιά.",
)
TURKISH = (
    "Şehrimizden güncel haberler",
    "Dün akşam belediye meclisi toplandı ve gelecek yılın "
    "bütçesini görüştü. Şehir halkı değişiklik bekliyor, çünkü işsizlik artıyor.",
)
HEBREW = (
    "חדשות מן העיר שלנו",
    "אמש התכנסה מועצת העיר ודנה בתקציב לשנה הבאה. התושבים מחכים לשינויים כבר זמן רב.",
)
ARABIC = (
    "أخبار من مدينتنا",
    "اجتمع مجلس المدينة مساء أمس وناقش ميزانية العام المقبل. ينتظر السكان التغيير منذ وقت طويل.",
)
THAI = (
    "ข่าวจากเมืองของเรา",
    "เมื่อวานนี้สภาเมืองได้ประชุมเรื่องงบประมาณของปีหน้า ประชาชนรอการเปลี่ยนแปลงมานานแล้ว",
)
VIETNAMESE = (
    "Tin tức thành phố",
    "Tối hôm qua hội đồng thành phố đã họp về ngân sách năm tới. "
    "Người dân chờ đợi những thay đổi từ rất lâu rồi.",
)
LITHUANIAN = (
    "Naujienos iš mūsų miesto",
    "Vakar vakare įvyko miesto tarybos posėdis. Gyventojai "
    "laukia pokyčių, nes ateinančių metų biudžetas bus žymiai didesnis.",
)
LATVIAN = (
    "Jaunākās ziņas no pilsētas",
    "Vakar vakarā notika pilsētas domes sēde, kurā apsprieda "
    "nākamā gada budžetu. Iedzīvotāji gaida pārmaiņas jau ilgāku laiku.",
)
ESTONIAN = (
    "Uudised meie linnast",
    "Eile õhtul toimus linnavolikogu istung, kus arutati järgmise "
    "aasta eelarvet. Elanikud ootavad muutusi juba ammu, ütles linnapea Tõnis Žukov.",
)
GERMAN = (
    "Neues über unsere Städte",
    "Gestern Abend tagte der Rat und beriet über den Haushalt für "
    "nächstes Jahr. Die Bürger müssen größere Änderungen erwarten.",
)
FRENCH = (
    "Actualités de la ville à côté",
    "Hier soir, le conseil municipal s’est réuni pour débattre "
    "du budget de l’année prochaine. Les habitants espèrent être entendus.",
)
ICELANDIC = (
    "Fréttir úr bænum okkar",
    "Í gærkvöldi kom bæjarstjórnin saman og ræddi fjárhagsáætlun "
    "næsta árs. Íbúar bíða eftir breytingum því það þarf að laga göturnar.",
)
JAPANESE = (
    "私たちの町のニュース",
    "昨日の夜、市議会が開かれ、来年度の予算について話し合われました。"
    "市民は長い間変化を待っています。",
)
CHINESE = ("我们城市的新闻", "昨天晚上市议会开会讨论了明年的预算。市民们等待改变已经很久了。")
TAIWANESE = ("我們城市的新聞", "昨天晚上市議會開會討論了明年的預算。市民們等待改變已經很久了。")
KOREAN = (
    "우리 도시의 소식",
    "어제 저녁 시의회가 열려 내년 예산을 논의했습니다. 시민들은 오랫동안 변화를 기다려 왔습니다.",
)

PAGES = (
    # Python codec, top-level domain, text
    ("iso8859-2", "cz", CZECH),
    ("cp1250", "cz", CZECH),
    ("utf-8", "cz", CZECH),
    ("iso8859-2", "sk", SLOVAK),
    ("cp1250", "sk", SLOVAK),
    ("iso8859-2", "pl", POLISH),
    ("cp1250", "pl", POLISH),
    ("iso8859-2", "hu", HUNGARIAN),
    ("cp1250", "hu", HUNGARIAN),
    ("iso8859-2", "si", SLOVENE),
    ("cp1250", "hr", CROATIAN),
    ("iso8859-2", "ro", ROMANIAN),
    ("cp1251", "ru", RUSSIAN),
    ("koi8-r", "ru", RUSSIAN),
    ("iso8859-5", "ru", RUSSIAN),
    ("cp866", "ru", RUSSIAN),
    ("koi8-u", "ua", UKRAINIAN),
    ("cp1251", "ua", UKRAINIAN),
    ("cp1251", "bg", BULGARIAN),
    ("iso8859-7", "gr", GREEK),
    ("cp1253", "gr", GREEK),
    ("cp1254", "tr", TURKISH),
    ("cp1255", "il", HEBREW),
    ("iso8859-8", "il", HEBREW),
    ("cp1256", "eg", ARABIC),
    ("iso8859-6", "eg", ARABIC),
    ("cp874", "th", THAI),
    ("cp1258", "vn", VIETNAMESE),
    ("cp1257", "lt", LITHUANIAN),
    ("iso8859-13", "lv", LATVIAN),
    ("cp1257", "ee", ESTONIAN),
    ("cp1252", "de", GERMAN),
    ("cp1252", "fr", FRENCH),
    ("cp1252", "is", ICELANDIC),
    ("euc_jp", "jp", JAPANESE),
    ("cp932", "jp", JAPANESE),
    ("gbk", "cn", CHINESE),
    ("big5", "tw", TAIWANESE),
    ("euc_kr", "kr", KOREAN),
    ("utf-8", "jp", JAPANESE),
    ("utf-8", "vn", VIETNAMESE),
    ("utf-16le", "cz", CZECH),
    ("utf-16be", "ru", RUSSIAN),
)


def decomposed(text: str) -> str:
    """Return Vietnamese with its tone marks by themselves, as windows-1258 has them."""
    pieces = []
    for character in text:
        base, *marks = unicodedata.normalize("NFD", character)
        tones = [mark for mark in marks if mark in "\u0300\u0301\u0303\u0309\u0323"]
        others = [mark for mark in marks if mark not in tones]
        pieces += [unicodedata.normalize("NFC", "".join([base, *others])), *tones]
    return "".join(pieces)


def page(codec: str, text: tuple[str, str]) -> tuple[bytes, str]:
    """Return a page that declares nothing, and its title."""
    title, body = map(decomposed, text) if codec == "cp1258" else text
    html = f"<html><head><title>{title}</title></head>\n<body><p class=first>{body}</p></body>"
    return html.encode(codec), title

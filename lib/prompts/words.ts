/** The languages whose prompts are rewritten. */
export const languages = ['en', 'zh', 'de', 'fr', 'es', 'it', 'pt'] as const;
export type Language = (typeof languages)[number];

/**
 * Words of one language. Lists of words are one string each, separated by spaces. Patterns are sources of
 * regular expressions over text in lower case with hyphens as spaces; they match whole words, in Chinese any
 * place. `~` stands for up to three words between.
 */
export interface LanguageWords {
  /** Name in English, for the instruction. */
  name: string;
  /** Words without content; in Chinese, characters. */
  stopWords: string;
  /** Pattern of the words that negate a clause. */
  negations: string;
  /** Words for the numbers from two on: index 0 is "two". "One" is an article or pronoun in most languages. */
  numbers: string;
  /** Pairs of opposite directions, each side a pattern. */
  directions: readonly (readonly [string, string])[];
  camera: string;
  /** Patterns of camera moves by name; `static` is a camera that does not move. */
  moves: { readonly static: string; readonly [name: string]: string };
  /** Words of motion, camera and light that a salvaged sentence may add. */
  motion: string;
  persons: string;
  /** Parts of the body and states of dress that a rewrite must not bring in. */
  intimate: string;
}

const en: LanguageWords = {
  name: 'English',
  stopWords:
    'a an the and or but of in on at to from with by for into onto over under through across along around behind beside between near off out up down as while when then that this these those it its is are was were be being been am has have had having do does did will would can could may might must he she they them him her his their we us our you your i my me there here who which what where very so just also only one some any each both all more most other than too again still until before after during about above below toward towards',
  negations:
    "no|not|without|never|none|nobody|nothing|neither|nor|avoid|avoids|avoiding|cannot|dont|doesnt|wont|isnt|\\p{L}+n't",
  numbers:
    'two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty',
  directions: [
    ['left|leftward|leftwards', 'right|rightward|rightwards'],
    ['up|upward|upwards', 'down|downward|downwards'],
    ['toward|towards', 'away'],
    ['forward|forwards', 'backward|backwards'],
    ['clockwise', 'counterclockwise|anticlockwise|counter clockwise|anti clockwise'],
    ['inward|inwards', 'outward|outwards'],
  ],
  camera: 'camera',
  moves: {
    static:
      'camera~ (still|static|fixed|stationary|steady|locked)|(static|fixed|still|locked) (camera|shot)|tripod',
    zoom: 'zoom(s|ed|ing)?',
    in: '(zoom(s|ed|ing)?|push(es|ing)?|dolly(ing)?|dollies)( \\p{L}+ly)? in|camera~ closer',
    out: '(zoom(s|ed|ing)?|pull(s|ing)?|dolly(ing)?|dollies)( \\p{L}+ly)? (out|back|away)|camera~ away',
    pan: 'pan(s|ned|ning)?',
    tilt: 'camera~ tilt(s|ing)?|tilt (up|down|shot)',
    orbit: 'orbit(s|ing)?|camera~ (circles|circling|rotates|revolves|spins)|arc shot|360',
    track: 'tracking shot|camera~ (follow|track|trail)(s|ing)?|follow(ing)? shot|travelling shot',
    dolly: 'dolly(ing)?|dollies',
    crane: 'crane shot|camera~ (rises?|rising|lifts?|lowers?|descends?|cranes?)|drone shot',
    handheld: 'hand ?held|shaky',
    move: 'camera~ (moves?|moving|advances?|glides?|drifts?|sways?|approach(es)?|pulls?|push(es)?|sweeps?|turns?)',
  },
  motion:
    'slowly gently softly smoothly steadily gradually slightly lightly calmly evenly quietly slow gentle soft smooth steady subtle slight calm natural motion movement moves move moving camera holds hold still remains stays shot frame light shadow shadows shimmers flickers glows sways sway swaying drifts drifting breathes blinks turns turn continues continue keeps rises falls back forth side pace rhythm step steps fluid',
  persons:
    'man men woman women person persons people girl girls boy boys child children baby babies lady ladies guy guys couple couples crowd crowds someone somebody friend friends stranger strangers figure figures kid kids mother father dancer dancers',
  intimate:
    'breast breasts bosom cleavage chest nipple nipples thigh thighs hip hips buttocks butt belly navel waist torso groin genitals skin naked nude topless bare undressed undresses undressing lingerie underwear bikini',
};

const zh: LanguageWords = {
  name: 'Chinese',
  stopWords:
    '的 了 着 在 和 与 是 有 一 个 这 那 他 她 它 们 地 得 到 从 向 对 把 被 也 都 又 就 还 而 并 或 位 只 条 中 里 上 下 之 其 所 以 为 很 着',
  // Words that contain such a character without a negation are excluded.
  negations:
    '不(?!断|停|久|同|时|仅|锈)|(?<!沉|淹|埋|出)没|(?<!特|分|告|区|级|性)别(?!墅|的|人)|无(?!人机|数|限|比|边)|無|禁止|未|勿|避免|毫无',
  numbers: '[两兩二] 三 四(?!周|处) 五 六 七 八 九 十(?!分)',
  directions: [
    ['左', '右'],
    ['向上|往上', '向下|往下'],
    ['向前|往前|前进', '向后|往后|后退'],
    ['靠近|走近', '远离|走远|离开'],
    ['顺时针', '逆时针'],
  ],
  camera: '镜头|相机|摄影机',
  moves: {
    static: '(镜头|相机|摄影机)(保持|完全|始终)*(静止|固定|稳定)|固定镜头|静止镜头',
    in: '推近|拉近|推进|镜头(缓缓|慢慢)?(靠近|前推)',
    out: '拉远|推远|后拉|镜头(缓缓|慢慢)?(后退|远离)',
    pan: '平移|摇摄|横摇|摇镜',
    orbit: '环绕|绕拍|镜头(缓缓|慢慢)?旋转',
    track: '跟随|跟拍|镜头(缓缓|慢慢)?追',
    crane: '升降|航拍|镜头(缓缓|慢慢)?(上升|下降)',
    handheld: '手持',
    move: '镜头(缓缓|慢慢)?移动|运镜',
  },
  motion:
    '缓 慢 轻 柔 微 动 作 运 移 摆 摇 晃 飘 转 镜 头 保 持 静 止 稳 定 光 影 线 闪 烁 呼 吸 眨 平 自 然 流 畅 节 奏 步 继 续 来 回 画 面',
  persons:
    '男人 女人 男子 女子 女孩 男孩 孩子 小孩 儿童 婴儿 老人 人群 路人 情侣 朋友 少女 少年 母亲 父亲 舞者 陌生人',
  intimate: '胸 乳 臀 大腿 腰 肚 肌肤 皮肤 裸 内衣 比基尼 脱衣',
};

const de: LanguageWords = {
  name: 'German',
  stopWords:
    'der die das den dem des ein eine einen einem einer eines und oder aber von vom in im an am auf zu zum zur mit bei beim für aus nach vor hinter neben über unter durch um bis als während wenn dann dass dies diese dieser dieses es sich ist sind war waren sein wird werden wurde hat haben hatte kann er sie ihr ihre ihren ihrem ihrer seine seinen seinem seiner sein wir uns du ich mein da hier wer was wo sehr so nur auch noch mehr alle beide jede jeder wieder dabei',
  negations:
    'kein|keine|keinen|keinem|keiner|keines|nicht|ohne|nie|niemals|nichts|niemand|weder|vermeide|vermeiden',
  numbers:
    'zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig',
  directions: [
    ['links', 'rechts'],
    ['linke[rnsm]?', 'rechte[rnsm]?'],
    ['aufwärts|hinauf|herauf|oben|hoch', 'abwärts|hinab|herab|unten|hinunter|herunter'],
    ['vorwärts|vorne?', 'rückwärts|hinten'],
    ['hinein|herein', 'hinaus|heraus'],
    ['im uhrzeigersinn', 'gegen den uhrzeigersinn'],
  ],
  camera: 'kamera',
  moves: {
    static:
      'kamera~ (still|ruhig|fest|statisch|unbewegt|starr)|(statische|feste|ruhige|starre) (kamera|einstellung)|stativ',
    zoom: '\\p{L}*zoom\\p{L}*',
    in: '(zoomt?|fährt|kamera)~ (heran|hinein|rein|näher)|(heran|hinein)(zoom|fahr)\\p{L}*|nähert sich~ kamera|kamera~ nähert',
    out: '(zoomt?|fährt|kamera)~ (heraus|hinaus|zurück|raus)|(heraus|zurück)(zoom|fahr)\\p{L}*|kamera~ entfernt',
    pan: '\\p{L}*schwenk\\p{L}*',
    tilt: 'kamera~ neigt',
    orbit: 'kamera~ (umkreist|umrundet|kreist|dreht)|kreisfahrt',
    track: 'kamera~ (folgt|verfolgt|begleitet)|verfolgungsfahrt',
    dolly: '\\p{L}*kamerafahrt|dolly',
    crane: 'kranfahrt|kamera~ (steigt|sinkt|hebt|senkt)',
    handheld: 'handkamera|verwackelt',
    move: 'kamera~ (fährt|bewegt|gleitet|schwebt|wandert)',
  },
  motion:
    'langsam sanft leicht ruhig gleichmäßig allmählich leise weich stetig bewegung bewegungen bewegt bewegen kamera hält bleibt still ruht licht schatten schimmert flackert leuchtet wiegt schwingt atmet blinzelt dreht geht weiter hin her rhythmus schritt schritte fließend natürlich dezent bild',
  persons:
    'mann männer frau frauen person personen mensch menschen mädchen junge jungen kind kinder baby babys dame herr paar paare menge leute jemand freund freunde freundin fremde gestalt mutter vater tänzerin tänzer',
  intimate:
    'brust brüste busen dekolleté schenkel oberschenkel hüfte hüften po hintern gesäß bauch bauchnabel taille oberkörper haut nackt nackte nackten nackter unbekleidet entkleidet dessous unterwäsche bikini',
};

const fr: LanguageWords = {
  name: 'French',
  stopWords:
    'le la les l un une des du de d et ou mais à au aux en dans sur sous par pour avec vers chez entre derrière devant depuis pendant que qu qui quoi où quand comme ce cet cette ces il elle ils elles on se s son sa ses leur leurs lui y est sont était étaient être a ont avait fait très plus aussi encore puis alors tandis tout tous toute toutes chaque deux-ci nous vous je j tu mon ma mes c n m t',
  negations: 'ne|n|pas|sans|jamais|aucun|aucune|rien|personne ne|ni|évite|évitez|éviter',
  numbers:
    'deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dixsept dixhuit dixneuf vingt',
  directions: [
    ['gauche', 'droite'],
    ['haut', 'bas'],
    ['vers', 'loin'],
    ['avant', 'arrière'],
    ['monte|montent', 'descend|descendent'],
    ['sens horaire', 'sens antihoraire'],
  ],
  camera: 'caméra|camera',
  moves: {
    static: '(caméra|camera)~ (fixe|immobile|statique|stable)|plan fixe|trépied',
    zoom: 'zoom\\p{L}*|dézoom\\p{L}*',
    in: 'zoom\\p{L}* avant|travelling avant|caméra~ (avance|approche|rapproche)|gros plan progressif',
    out: 'zoom\\p{L}* arrière|travelling arrière|dézoom\\p{L}*|caméra~ (recule|éloigne)',
    pan: 'panoramique|panote|caméra~ (pivote|balaie)',
    tilt: 'caméra~ (incline|bascule)',
    orbit: 'caméra~ (tourne|orbite)|orbite',
    track: 'caméra~ (suit|accompagne)|plan de suivi',
    dolly: 'travelling',
    crane: 'caméra~ (monte|descend|élève)|plan de grue|drone',
    handheld: "caméra à l'épaule|caméra portée",
    move: 'caméra~ (bouge|glisse|déplace|flotte)',
  },
  motion:
    'lentement doucement légèrement calmement progressivement lent lente doux douce mouvement mouvements bouge bougent caméra reste demeure immobile fixe lumière ombre ombres scintille vacille brille ondule ondulent balance respire cligne tourne continue avance pas rythme naturel naturelle fluide cadre image plan',
  persons:
    'homme hommes femme femmes personne personnes gens fille filles garçon garçons enfant enfants bébé bébés dame dames couple couples foule ami amis amie amies inconnu silhouette mère père danseuse danseur',
  intimate:
    'sein seins poitrine décolleté cuisse cuisses hanche hanches fesse fesses ventre nombril taille torse peau nu nue nus nues déshabille lingerie sous-vêtements bikini',
};

const es: LanguageWords = {
  name: 'Spanish',
  stopWords:
    'el la los las un una unos unas y e o u pero de del a al en con por para hacia desde hasta sobre bajo entre tras ante mientras cuando como que quien donde este esta estos estas ese esa eso lo le les se su sus mi mis tu tus es son era eran ser está están estaba fue ha han hay tiene tienen muy más también luego entonces todo toda todos todas cada otro otra nos yo él ella ellos ellas',
  negations: 'no|sin|nunca|jamás|ni|nadie|ningún|ninguna|ninguno|tampoco|evita|evite|evitar',
  numbers:
    'dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte',
  directions: [
    ['izquierda|izquierdo', 'derecha|derecho'],
    ['arriba', 'abajo'],
    ['adelante', 'atrás'],
    ['hacia', 'lejos'],
    ['sube|suben', 'baja|bajan'],
    ['sentido horario', 'sentido antihorario'],
  ],
  camera: 'cámara|camara',
  moves: {
    static:
      '(cámara|camara)~ (fija|quieta|inmóvil|estática|estable)|(plano|toma) (fijo|fija)|trípode',
    zoom: 'zoom\\p{L}*',
    in: 'acercamiento|zoom~ (adelante|acerc\\p{L}*)|zoom in|cámara~ (acerca|avanza)',
    out: 'alejamiento|zoom~ (atrás|alej\\p{L}*)|zoom out|cámara~ (aleja|retrocede)',
    pan: 'paneo|panea|panorámica|cámara~ barre',
    tilt: 'cámara~ inclina',
    orbit: 'orbita|órbita|cámara~ (gira|rodea)',
    track: 'cámara~ (sigue|acompaña|persigue)|seguimiento',
    dolly: 'travelling|dolly',
    crane: 'cámara~ (sube|baja|asciende|desciende|eleva)|grúa|dron',
    handheld: 'cámara en mano',
    move: 'cámara~ (mueve|desliza|desplaza|flota)',
  },
  motion:
    'lentamente suavemente ligeramente despacio poco gradualmente lento lenta suave suaves movimiento movimientos mueve mueven cámara permanece queda mantiene fija quieta inmóvil luz sombra sombras brilla parpadea titila ondea ondean balancea respira gira continúa sigue paso pasos ritmo natural fluido fluida imagen plano calma',
  persons:
    'hombre hombres mujer mujeres persona personas gente niña niñas niño niños chica chicas chico chicos bebé bebés señora señor pareja parejas multitud alguien amigo amigos amiga amigas desconocido figura madre padre bailarina bailarín',
  intimate:
    'pecho pechos seno senos escote muslo muslos cadera caderas nalgas trasero vientre ombligo cintura torso piel desnudo desnuda desnudos desnudas desviste lencería bikini',
};

const it: LanguageWords = {
  name: 'Italian',
  stopWords:
    'il lo la i gli le l un uno una e ed o ma di del dello della dei degli delle d a al allo alla ai agli alle all in nel nella nei nelle nell con per da dal dalla dai su sul sulla sui sulle tra fra mentre quando come che chi dove questo questa questi quello quella si suo sua suoi sue è sono era erano essere ha hanno viene molto più anche poi ancora tutto tutta tutti ogni altro altra ci vi lei lui loro io tu mio mia verso dietro davanti sotto sopra',
  negations: 'non|senza|mai|né|nessun|nessuno|nessuna|niente|nulla|neanche|evita|evitare',
  numbers:
    'due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette diciotto diciannove venti',
  directions: [
    ['sinistra|sinistro', 'destra|destro'],
    ['in alto|insù', 'in basso|giù'],
    ['avanti', 'indietro'],
    ['verso', 'lontano'],
    ['sale|salgono', 'scende|scendono'],
    ['senso orario', 'senso antiorario'],
  ],
  camera: 'camera|telecamera|cinepresa',
  moves: {
    static: 'camera~ (fissa|ferma|immobile|statica|stabile)|inquadratura (fissa|statica)|treppiede',
    zoom: 'zoom\\p{L}*|zuma\\p{L}*',
    in: 'zoom~ (avanti|avvicin\\p{L}*)|zoom in|camera~ (avvicina|avanza)',
    out: 'zoom~ (indietro|allontan\\p{L}*)|zoom out|camera~ (allontana|arretra|indietreggia)',
    pan: 'panoramica|camera~ panoramica',
    tilt: 'camera~ inclina',
    orbit: 'orbita|camera~ (gira|ruota|circonda)',
    track: 'camera~ (segue|insegue|accompagna)',
    dolly: 'carrellata|carrello|dolly',
    crane: 'camera~ (sale|scende|alza|abbassa)|gru|drone',
    handheld: 'camera a mano|macchina a mano',
    move: 'camera~ (muove|scorre|scivola|sposta)',
  },
  motion:
    'lentamente dolcemente leggermente piano gradualmente lento lenta dolce morbido movimento movimenti muove muovono camera telecamera resta rimane ferma fissa immobile luce ombra ombre brilla tremola luccica ondeggia ondeggiano oscilla respira gira continua passo passi ritmo naturale fluido fluida immagine inquadratura calma',
  persons:
    'uomo uomini donna donne persona persone gente ragazza ragazze ragazzo ragazzi bambina bambine bambino bambini neonato signora signore coppia coppie folla qualcuno amico amici amica amiche sconosciuto figura madre padre ballerina ballerino',
  intimate:
    'seno seni petto scollatura coscia cosce fianchi natiche sedere ventre ombelico torso pelle nudo nuda nudi nude spoglia lingerie bikini',
};

const pt: LanguageWords = {
  name: 'Portuguese',
  stopWords:
    'o a os as um uma uns umas e ou mas de do da dos das d em no na nos nas num numa ao à aos às com por pelo pela pelos pelas para sobre sob entre até desde enquanto quando como que quem onde este esta esse essa isso aquele lhe se seu sua seus suas meu minha é são era eram ser está estão estava foi há tem têm muito mais também então depois todo toda todos todas cada outro outra ele ela eles elas eu você nós atrás perto',
  negations: 'não|sem|nunca|jamais|nem|ninguém|nenhum|nenhuma|tampouco|evite|evita|evitar',
  numbers:
    'dois|duas três quatro cinco seis sete oito nove dez onze doze treze catorze|quatorze quinze dezesseis|dezasseis dezessete|dezassete dezoito dezenove|dezanove vinte',
  directions: [
    ['esquerda|esquerdo', 'direita|direito'],
    ['cima', 'baixo'],
    ['frente|adiante', 'trás'],
    ['rumo', 'longe'],
    ['sobe|sobem', 'desce|descem'],
    ['sentido horário', 'sentido anti horário'],
  ],
  camera: 'câmera|câmara|camera',
  moves: {
    static: '(câmera|câmara|camera)~ (fixa|parada|imóvel|estática|estável)|plano fixo|tripé',
    zoom: 'zoom\\p{L}*',
    in: 'zoom in|aproximação|(câmera|câmara)~ (aproxima|avança)',
    out: 'zoom out|afastamento|(câmera|câmara)~ (afasta|recua)',
    pan: 'panorâmica',
    tilt: '(câmera|câmara)~ inclina',
    orbit: 'orbita|órbita|(câmera|câmara)~ (gira|roda|circunda)',
    track: '(câmera|câmara)~ (segue|acompanha|persegue)',
    dolly: 'travelling|dolly',
    crane: '(câmera|câmara)~ (sobe|desce|eleva)|grua|drone',
    handheld: '(câmera|câmara) na mão',
    move: '(câmera|câmara)~ (move|desliza|desloca|flutua)',
  },
  motion:
    'lentamente suavemente levemente devagar gradualmente lento lenta suave suaves movimento movimentos move movem câmera câmara permanece fica mantém fixa parada imóvel luz sombra sombras brilha pisca cintila ondula balança respira gira continua segue passo passos ritmo natural fluido fluida imagem plano calma',
  persons:
    'homem homens mulher mulheres pessoa pessoas gente menina meninas menino meninos garota garotas garoto criança crianças bebê bebês senhora senhor casal casais multidão alguém amigo amigos amiga amigas desconhecido figura mãe pai dançarina dançarino',
  intimate:
    'peito peitos seio seios decote coxa coxas quadril quadris nádegas bunda ventre barriga umbigo cintura torso pele nu nua nus nuas despe lingerie biquíni',
};

export const languageWords: Readonly<Record<Language, LanguageWords>> = {
  en,
  zh,
  de,
  fr,
  es,
  it,
  pt,
};

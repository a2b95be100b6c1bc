import type { LanguageWords } from './types';

export const it: LanguageWords = {
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

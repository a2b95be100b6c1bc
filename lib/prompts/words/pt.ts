import type { LanguageWords } from './types';

export const pt: LanguageWords = {
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

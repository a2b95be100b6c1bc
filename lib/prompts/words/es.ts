import type { LanguageWords } from './types';

export const es: LanguageWords = {
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

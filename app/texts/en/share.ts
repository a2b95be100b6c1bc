import { addTexts } from '../english';
import share from './share.json';

addTexts({ share });

import { addTexts } from '../english';
import models from './models.json';

addTexts({ models });

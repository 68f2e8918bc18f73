/** The English texts of connecting a program come with the parts that show them; the other languages have them from the start. */
import i18next from 'i18next';
import connect from '../texts/en/connect.ts';

i18next.addResourceBundle('en', 'translation', { client: connect }, true);

/** The English texts of members come with what shows them; the other languages have them from the start. */
import i18next from 'i18next';
import members from '../texts/en/members.ts';

i18next.addResourceBundle('en', 'translation', { client: members }, true);

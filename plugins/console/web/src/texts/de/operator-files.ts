/** German texts of the operator's pages of files and batches. */
import type en from '../en/operator-files.ts';
import type { Words } from '../en.ts';

const texts: Words<typeof en> = {
  files: {
    title: 'Dateien',
    intro: 'Was Kunden hochgeladen haben, und Ergebnisse von Batches. Bilder und Videos stehen auf der Seite Aufgaben.',
    anyPurpose: 'Jeder Zweck',
    detail: 'Datei',
    mediaType: 'Typ',
    accountBytes: 'Alle Dateien des Kontos',
    remove: 'Datei löschen',
    removeTitle: '{{name}} löschen?',
    removeText: 'Sie lässt sich nicht wiederherstellen. Ein Batch, der sie noch nicht gelesen hat, schlägt fehl.',
    removed: 'Die Datei ist gelöscht.',
    gone: 'Diese Datei gibt es nicht mehr.',
    empty: 'Keine Datei passt zu diesen Filtern',
    emptyHint: 'Kunden laden sie mit POST /v1/files hoch, und Batches schreiben ihre Ergebnisse als Dateien.',
  },
  batches: {
    title: 'Batches',
    intro:
      'Viele Anfragen in einem Auftrag, innerhalb eines Tages ausgeführt: als Aufrufe oder als Batch des Anbieters.',
    anyEndpoint: 'Jeder Endpunkt',
    madeBy: 'Ausgeführt durch',
    calls: 'Aufrufe',
    lines: 'Zeilen',
    detail: 'Batch',
    cancel: 'Batch abbrechen',
    cancelTitle: 'Batch {{name}} abbrechen?',
    cancelText: 'Laufende Zeilen werden beendet und berechnet, die übrigen nicht ausgeführt.',
    cancelled: 'Der Batch wird abgebrochen.',
    files: 'Seine Dateien',
    vendor: 'Beim Anbieter',
    vendorModel: '{{asked}} als {{model}}',
    vendorState: {
      preparing: 'Für jede Zeile wird Geld zurückgelegt',
      uploading: 'Anfragen werden hochgeladen',
      ordering: 'Wird beauftragt',
      running: 'Der Anbieter arbeitet daran',
      reading: 'Ergebnisse werden gelesen',
      ended: 'Beendet',
    },
    vendorResult: {
      completed: 'Vom Anbieter fertiggestellt',
      cancelled: 'Vom Anbieter abgebrochen',
      expired: 'Beim Anbieter abgelaufen',
    },
    protocol: 'Protokoll',
    ordered: 'Beauftragt',
    vendorId: 'Id beim Anbieter',
    cancelSent: 'Der Anbieter wurde um Abbruch gebeten',
    empty: 'Kein Batch passt zu diesen Filtern',
    emptyHint: 'Kunden beauftragen sie mit POST /v1/batches, /v1/messages/batches oder batchGenerateContent.',
  },
};
export default texts;

/** German texts of the operator's alerts. */
import type { Part } from '../en.ts';

const texts: Part<'operator'>['alerts'] = {
  title: 'Alarme',
  intro:
    'Was nicht stimmt, seit wann, und wer es gesehen hat. Regeln und Ziele stehen in der Gateway-Datei unter alerts.',
  empty: 'Keine Alarme',
  emptyHint: 'In dieser Zeit wurde keine Regel verletzt.',
  running_one: '{{count}} Alarm ist aktiv',
  running_other: '{{count}} Alarme sind aktiv',
  subject: 'Betrifft',
  what: 'Was',
  value: 'Wert',
  threshold: 'Schwelle: {{value}}',
  began: 'Beginn',
  ended: 'Ende',
  acknowledged: 'Bestätigt von',
  acknowledge: 'Bestätigen',
  acknowledgeTitle: 'Alarm zu {{subject}} bestätigen',
  acknowledgeHint: 'Er verschwindet aus dem Banner und wird bis zu seinem Ende nicht erneut gesendet.',
  done: 'Bestätigt.',
  state: { running: 'Aktiv', ended: 'Beendet' },
  sinks: 'Gesendet an',
  noSinks: 'Noch nirgendwohin: Unter alerts.sinks lassen sich Mailadressen, Webhooks oder Chats angeben.',
  fault: 'Die letzte Nachricht wurde nicht angenommen',
  waiting_one: '{{count}} Nachricht wird erneut gesendet',
  waiting_other: '{{count}} Nachrichten werden erneut gesendet',
  times: 'das {{value}}-Fache des Üblichen',
  kinds: {
    model_success: 'Anteil der Anfragen, die das Modell beantwortet',
    provider_success: 'Anteil der Anfragen, die der Anbieter beantwortet',
    model_first_byte: 'Zeit bis zum ersten Byte des Modells, p95',
    provider_first_byte: 'Zeit bis zum ersten Byte des Anbieters, p95',
    circuit_open: 'Modell wird übergangen',
    key_resting: 'Schlüssel des Anbieters pausiert',
    negative_margin: 'Aufrufe kosten mehr, als berechnet wurde',
    spend_spike: 'Konto gibt weit mehr aus als üblich',
    ledger_mismatch: 'Die Buchungen gehen nicht auf',
    database_restored: 'Die Datenbank wurde auf einen früheren Stand zurückgesetzt',
    dead_leases: 'Ausgefallener Prozess hat Guthaben belegt',
    usage_implausible: 'Anbieter meldete einen unmöglichen Verbrauch',
    unpriced_model: 'Modell ohne Preis wurde angefragt',
  },
};

export default texts;

/** Japanese texts of the operator's alerts. */
import type { Part } from '../en.ts';

const texts: Part<'operator'>['alerts'] = {
  title: 'アラート',
  intro: '何が、いつから問題で、誰が確認したか。ルールと送信先はゲートウェイファイルの alerts で設定します。',
  empty: 'アラートはありません',
  emptyHint: 'この期間にルール違反はありませんでした。',
  running_one: '{{count}} 件のアラートが発生中',
  running_other: '{{count}} 件のアラートが発生中',
  subject: '対象',
  what: '内容',
  value: '値',
  threshold: 'しきい値：{{value}}',
  began: '開始',
  ended: '終了',
  acknowledged: '確認者',
  acknowledge: '確認する',
  acknowledgeTitle: '{{subject}} のアラートを確認',
  acknowledgeHint: 'バナーから消え、終了するまで再送されません。',
  done: '確認しました。',
  state: { running: '発生中', ended: '終了' },
  sinks: '送信先',
  noSinks: 'まだありません。alerts.sinks にメールアドレス、Webhook、またはチャットを設定してください。',
  fault: '直近のメッセージは受け付けられませんでした',
  waiting_one: '{{count}} 件のメッセージを再送します',
  waiting_other: '{{count}} 件のメッセージを再送します',
  times: '通常の {{value}} 倍',
  kinds: {
    model_success: 'モデルが応答したリクエストの割合',
    provider_success: 'プロバイダーが応答したリクエストの割合',
    model_first_byte: 'モデルの最初のバイトまでの時間 p95',
    provider_first_byte: 'プロバイダーの最初のバイトまでの時間 p95',
    circuit_open: '障害のためモデルを迂回中',
    key_resting: 'ベンダーのキーが休止中',
    negative_margin: '呼び出しの原価が請求額を上回っています',
    spend_spike: 'アカウントの支出が通常を大きく上回っています',
    ledger_mismatch: '台帳の計算が合いません',
    usage_implausible: 'ベンダーがあり得ない使用量を報告しました',
    unpriced_model: '価格のないモデルが要求されました',
  },
};

export default texts;

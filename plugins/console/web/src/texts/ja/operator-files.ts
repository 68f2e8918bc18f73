/** Japanese texts of the operator's pages of files and batches. */
import type en from '../en/operator-files.ts';
import type { Words } from '../en.ts';

const texts: Words<typeof en> = {
  files: {
    title: 'ファイル',
    intro: '利用者がアップロードしたファイルと、バッチの結果です。画像と動画は「タスク」ページにあります。',
    anyPurpose: 'すべての用途',
    detail: 'ファイル',
    mediaType: '種類',
    accountBytes: 'このアカウントの全ファイル',
    remove: 'ファイルを削除',
    removeTitle: '{{name}} を削除しますか？',
    removeText: '元に戻せません。まだ読み込んでいないバッチは失敗します。',
    removed: 'ファイルを削除しました。',
    gone: 'このファイルはもうありません。',
    empty: '条件に合うファイルはありません',
    emptyHint: '利用者は POST /v1/files でアップロードし、バッチは結果をファイルに書き込みます。',
  },
  batches: {
    title: 'バッチ',
    intro: '一度に注文された多数のリクエストです。1 日以内に、個別の呼び出しまたはベンダーのバッチとして処理されます。',
    anyEndpoint: 'すべてのエンドポイント',
    madeBy: '処理方法',
    calls: '個別の呼び出し',
    lines: '行数',
    detail: 'バッチ',
    cancel: 'バッチをキャンセル',
    cancelTitle: 'バッチ {{name}} をキャンセルしますか？',
    cancelText: '実行中の行は完了まで処理されて課金され、残りは実行されません。',
    cancelled: 'バッチをキャンセルしています。',
    files: '関連ファイル',
    vendor: 'ベンダー側の状況',
    vendorModel: '{{asked}}（{{model}} として）',
    vendorState: {
      preparing: '各行の金額を確保しています',
      uploading: 'リクエストをアップロードしています',
      ordering: '注文しています',
      running: 'ベンダーが処理しています',
      reading: '結果を読み込んでいます',
      ended: '終了',
    },
    vendorResult: {
      completed: 'ベンダーが完了しました',
      cancelled: 'ベンダーがキャンセルしました',
      expired: 'ベンダー側で期限切れになりました',
    },
    protocol: 'プロトコル',
    ordered: '注文日時',
    vendorId: 'ベンダーの ID',
    cancelSent: 'ベンダーにキャンセルを依頼しました',
    empty: '条件に合うバッチはありません',
    emptyHint: '利用者は POST /v1/batches、/v1/messages/batches、batchGenerateContent で注文します。',
  },
};
export default texts;

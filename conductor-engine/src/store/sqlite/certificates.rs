//! Certificates of erasure.

use crate::evidence::erasing::EraseCertificate;
use crate::store::CertificateChange;
use crate::store::sqlite::Outcome;
use crate::store::statements as sql;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};
use uuid::Uuid;

/// Writes what changed of the certificates of a node's disks.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    node: Uuid,
    change: CertificateChange<'_>,
) -> Outcome<()> {
    if change.forgets {
        sqlx::query(sql::DELETE_CERTIFICATES).bind(node.to_string()).execute(&mut *connection).await?;
    }
    for certificate in change.new {
        let put = sqlx::query(sql::PUT_CERTIFICATE)
            .bind(node.to_string())
            .bind(certificate.disk.clone())
            .bind(certificate.statement.step().to_owned())
            .bind(serde_json::to_string(certificate)?);
        put.execute(&mut *connection).await?;
    }
    Ok(())
}

/// The certificates of a node's disks.
pub(super) async fn of(readers: &SqlitePool, node: Uuid) -> Outcome<Vec<EraseCertificate>> {
    let found = sqlx::query_scalar::<Sqlite, String>(sql::CERTIFICATES).bind(node.to_string());
    let found = found.fetch_all(readers).await?;
    Ok(found.iter().map(|document| serde_json::from_str(document)).collect::<Result<_, _>>()?)
}
